// SPDX-License-Identifier: BSL-1.0
//
// Clocks that are brought together, against simulated ones that drift and messages that take
// unequal times.
#include "lib/measure/round_time.hpp"

#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

using namespace railpass;
using namespace railpass::internal;
using namespace railpass::internal::measure;

namespace {

struct drifting_clock {
  double offset_s = 0;
  double rate = 1;
  double at(double true_s) const { return offset_s + rate * true_s; }
};

/// Pings from `pupil` to a reference whose global clock is `global`, from the true time on.
template <class Global>
std::vector<ping> pings_of(const drifting_clock& pupil, const Global& global, double& true_s,
                           select::random_stream& random) {
  std::vector<ping> group;
  for (int i = 0; i < 20; ++i) {
    ping p{.sent_s = pupil.at(true_s)};
    const auto one_way_s = [&] { return 10e-6 - 20e-6 * std::log(1 - random.uniform()); };
    true_s += one_way_s();
    p.global_s = global(true_s);
    true_s += one_way_s();
    p.received_s = pupil.at(true_s);
    group.push_back(p);
  }
  return group;
}

}  // namespace

TEST_CASE("every rank learns from one that knows already, in as few rounds as can be") {
  CHECK(teacher_of(1).rank == 0);
  for (int rank = 1; rank < 300; ++rank) {
    const clock_teacher t = teacher_of(rank);
    CAPTURE(rank);
    CHECK(t.rank >= 0);
    CHECK(t.rank < (1 << t.round));
    CHECK(rank < (2 << t.round));
    if (t.rank > 0) CHECK(teacher_of(t.rank).round < t.round);
    // A teacher has one pupil in a round.
    CHECK(t.rank + (1 << t.round) == rank);
  }
}

TEST_CASE("clocks that drift are brought together over several teachers") {
  const unsigned seed = GENERATE(range(1U, 31U));
  CAPTURE(seed);
  select::random_stream random(seed);
  const int num_ranks = 1 + random.below(40);
  std::vector<drifting_clock> clocks;
  for (int r = 0; r < num_ranks; ++r)
    clocks.push_back({1e6 * random.uniform(), 1 + 1e-5 * random.normal()});
  std::vector<clock_model> models(std::size_t(num_ranks), clock_model{});
  std::vector<std::vector<std::vector<ping>>> groups(std::size_t(num_ranks), {{}});
  double true_s = 1000;
  for (int time = 0; time < 12; ++time) {
    for (int r = 1; r < num_ranks; ++r) {
      const auto mine = std::size_t(r), teacher = std::size_t(teacher_of(r).rank);
      const auto global = [&](double t) { return models[teacher].global_s(clocks[teacher].at(t)); };
      if (time == 0) groups[mine].clear();
      groups[mine].push_back(pings_of(clocks[mine], global, true_s, random));
      models[mine] = fit_clock(groups[mine]);
    }
    // The quickest of 20 pings may be some 20 us off, and a line through few of them as much more;
    // clocks drift by some 10 us in a second.
    for (const double later_s : {0.0, 0.25, 0.5})
      for (int r = 0; r < num_ranks; ++r) {
        const clock_model& m = models[std::size_t(r)];
        const double local_s = clocks[std::size_t(r)].at(true_s + later_s);
        const double global_s = clocks[0].at(true_s + later_s);
        CAPTURE(r, later_s, time);
        const int teachers = r > 0 ? teacher_of(r).round + 1 : 0;
        CHECK(std::abs(m.global_s(local_s) - global_s) <= 60e-6 * teachers);
        CHECK(m.local_s(m.global_s(local_s)) == Approx(local_s).margin(1e-8));
      }
    true_s += 0.5;
  }
}

TEST_CASE("without noise a line is found exactly, at any time of day") {
  for (const double now_s : {0.0, 1e5, 1e9}) {
    std::vector<std::vector<ping>> groups;
    for (int i = 0; i < 5; ++i) {
      const double local_s = now_s + i;
      // The slow one is off, and not taken.
      groups.push_back({{local_s - 3, local_s + 77, local_s + 3},
                        {local_s - 0.5, local_s + 2 + 0.25 * i, local_s + 0.5}});
    }
    const clock_model m = fit_clock(groups);
    CHECK(m.drift == Approx(0.25));
    CHECK(m.global_s(now_s + 4) - now_s == Approx(7));
  }
  const clock_model one = fit_clock(std::vector<std::vector<ping>>{{{1, 5, 3}}});
  CHECK(one.drift == 0);
  CHECK(one.global_s(10) == 13);
  CHECK_THROWS_AS(fit_clock({}), error);
  CHECK_THROWS_AS(fit_clock(std::vector<std::vector<ping>>{{}}), error);
}

TEST_CASE("rounds are announced long enough ahead, and not much longer") {
  const double needed_s = GENERATE(30e-6, 1e-3, 50e-3);
  announcement a(1e-4);
  int late = 0;
  for (int i = 0; i < 2000; ++i) {
    const bool is_late = a.ahead_s() < needed_s;
    if (i >= 1000) late += is_late;
    a.began(is_late);
  }
  CHECK(late < 50);
  CHECK(a.ahead_s() < 2 * needed_s);
  for (int i = 0; i < 100; ++i) a.began(true);
  CHECK(a.ahead_s() == announcement::most_s);
}
