// SPDX-License-Identifier: BSL-1.0
//
// Offsets of clocks that drift, from messages with random delays, against the truth.
#include "railpass/select/lockstep/clock_offset.hpp"

#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <vector>

using namespace railpass::select;

namespace {

/// A clock of a host, beside the true time.
struct planted_clock {
  double ahead_s = 0, drift = 0;
  double at(double true_s) const { return true_s + ahead_s + drift * true_s; }
};

constexpr double rounding_s = 1e-8;  // clocks show some 1e6 s

/// Exchanges a question and an answer, with different delays each way; returns the true time then.
double ask(const planted_clock& pupil, const planted_clock& teacher, clock_offset& of_pupil,
           const clock_offset& of_teacher, double true_s, random_stream& random) {
  const auto delay_s = [&](double usual_s) { return usual_s * (1 - std::log(random.uniform())); };
  const double asked = true_s, came = asked + delay_s(10e-6), left = came + delay_s(1e-3),
               received = left + delay_s(3e-6);
  const double left_s = teacher.at(left);
  learn_from(of_pupil,
             {.came_s = teacher.at(came),
              .left_s = left_s,
              .least_s = of_teacher.least_s(left_s),
              .most_s = of_teacher.most_s(left_s)},
             pupil.at(asked), pupil.at(received));
  return received;
}

/// The agreed clock is `reference`.
void check(const clock_offset& known, const planted_clock& own, const planted_clock& reference,
           double true_s) {
  const double truth_s = reference.at(true_s) - own.at(true_s), own_s = own.at(true_s);
  CHECK(known.least_s(own_s) <= truth_s + rounding_s);
  CHECK(known.most_s(own_s) >= truth_s - rounding_s);
  CHECK(std::abs(known.offset_s(own_s) - truth_s) <= known.error_s(own_s) + rounding_s);
}

}  // namespace

TEST_CASE("the offset of a clock is within its bounds, whatever the delays of messages") {
  const unsigned seed = GENERATE(range(1U, 101U));
  CAPTURE(seed);
  random_stream random(seed);
  // Each rank asks the one before it; the differences of drifts are at most 50 ppm.
  std::vector<planted_clock> clocks;
  std::vector<clock_offset> known(4, clock_offset::unknown());
  known[0] = {};
  for (std::size_t r = 0; r < known.size(); ++r)
    clocks.push_back(
        {.ahead_s = 2000 * random.uniform() - 1000, .drift = 50e-6 * (random.uniform() - 0.5)});
  double true_s = 1e5;
  for (int round = 0; round < 40; ++round) {
    for (std::size_t r = 1; r < known.size(); ++r)
      for (int i = 0; i < 1 + round % 8; ++i)
        true_s = ask(clocks[r], clocks[r - 1], known[r], known[r - 1], true_s, random);
    for (std::size_t r = 1; r < known.size(); ++r)
      for (const double away_s : {0.0, 1.0, 100.0, -0.5}) {
        if (round == 0 && away_s < 0) continue;
        check(known[r], clocks[r], clocks[0], true_s + away_s);
      }
    true_s += random.uniform();
  }
  for (std::size_t r = 1; r < known.size(); ++r)
    CHECK(known[r].error_s(clocks[r].at(true_s)) < 100e-6);
}

TEST_CASE("an offset is known the worse the older it is, and the better its drift is known") {
  constexpr double error_s = 5e-6;
  clock_offset known = clock_offset::unknown();
  CHECK_FALSE(known.is_known());
  known.learn(100, 7 - error_s, 7 + error_s);
  REQUIRE(known.is_known());
  CHECK(known.offset_s(100) == Approx(7));
  CHECK(known.error_s(101) == Approx(error_s + clock_offset::largest_drift));
  CHECK(known.error_s(99) == Approx(error_s + clock_offset::largest_drift));
  known.learn(110, 7 - error_s, 7 + error_s);
  CHECK(known.error_s(110) == Approx(error_s));
  CHECK(known.error_s(111) < error_s + 7e-6);
  // What is older than the latest bounds counts for less.
  known.learn(109, 7 - error_s / 2, 7 + error_s / 2);
  CHECK(known.error_s(110) < error_s);
  CHECK(known.error_s(110) > error_s / 2);
}

TEST_CASE("a clock that was set is learnt anew") {
  clock_offset known = clock_offset::unknown();
  known.learn(100, 7, 7.00001);
  known.learn(101, 9, 9.00001);
  CHECK(known.least_s(101) == 9);
  CHECK(known.most_s(101) == 9.00001);
  CHECK(known.error_s(102) == Approx(5e-6 + clock_offset::largest_drift));
}

TEST_CASE("who has the agreed clock always knows it") {
  const clock_offset own;
  CHECK(own.is_known());
  for (const double at_s : {0.0, 1e6}) {
    CHECK(own.offset_s(at_s) == 0);
    CHECK(own.error_s(at_s) == 0);
  }
}
