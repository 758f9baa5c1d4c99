// SPDX-License-Identifier: BSL-1.0
//
// When a communicator begins to be tuned, by calls whose lengths are known.
#include "railpass/select/lockstep/beginning.hpp"

#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <vector>

using namespace railpass;
using namespace railpass::select;

namespace {

double now_s = 0;
double clock_of_test() { return now_s; }

/// Makes calls until the first agreement at which to begin pays, or `most`; returns how many.
int calls_until_it_pays(beginning& b, std::int64_t bytes, double call_s, int most,
                        std::vector<int>* agreements = nullptr) {
  for (int i = 1; i <= most; ++i) {
    now_s += call_s;
    if (!b.count(bytes, false, clock_of_test)) continue;
    if (agreements) agreements->push_back(i);
    if (b.pays(now_s)) return i;
  }
  return most;
}

}  // namespace

TEST_CASE(
    "long calls are tuned from the first agreement on, short ones when they have taken long") {
  beginning long_calls, short_calls;
  CHECK(calls_until_it_pays(long_calls, 65536, 30e-6, 100) == beginning::first_agreement);

  std::vector<int> agreements;
  const int calls = calls_until_it_pays(short_calls, 8, 1e-6, 1000000, &agreements);
  CHECK((calls - 2) * 1e-6 >= 4.999e-3);
  CHECK(calls * 1e-6 <= 8.2 * 5e-3);
  CHECK(agreements.front() == beginning::first_agreement);
  CHECK(agreements.size() <= 5);  // each costs a reduction
}

TEST_CASE("calls that become long are not waited for eight times as often") {
  beginning b;
  CHECK(calls_until_it_pays(b, 8, 1e-6, 500) == 500);
  CHECK(calls_until_it_pays(b, 65536, 10e-3, 1000) <= 8);

  beginning of_unknown_length;
  CHECK(calls_until_it_pays(of_unknown_length, 8, 1e-6, 20) == 20);
  CHECK(calls_until_it_pays(of_unknown_length, 0, 10e-3, 1000) <= 8);
}

TEST_CASE("who asks for an arm gets it from the first agreement on") {
  beginning b;
  for (int i = 1; i < beginning::first_agreement; ++i) CHECK(!b.count(8, true, clock_of_test));
  CHECK(b.count(8, false, clock_of_test));
  CHECK(!b.count(8, false, clock_of_test));
  CHECK(b.count(8, true, clock_of_test));
}

TEST_CASE("calls that ask for an arm do not put off the next agreement of others") {
  beginning b;
  for (int i = 0; i < 100; ++i) b.count(8, true, clock_of_test);
  std::vector<int> agreements;
  for (int i = 1; i <= 600; ++i)
    if (b.count(8, false, clock_of_test)) agreements.push_back(i);
  CHECK(agreements == std::vector{64, 64 + 512});
}

TEST_CASE("ranks that are differently fast agree in the same calls") {
  random_stream random(7);
  for (int round = 0; round < 50; ++round) {
    beginning one, other;
    for (int i = 0; i < 5000; ++i) {
      const auto bytes = std::int64_t(std::exp(12 * random.uniform()));
      now_s += 1e-4 * random.uniform();
      const bool agrees = one.count(bytes, false, clock_of_test);
      now_s += 1e-2 * random.uniform();
      REQUIRE(other.count(bytes, false, clock_of_test) == agrees);
      if (i + 1 == beginning::first_agreement) REQUIRE(agrees);
    }
  }
}
