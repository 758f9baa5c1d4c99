// SPDX-License-Identifier: BSL-1.0
//
// The rate of a rail: measurement at receivers, conversion at senders, and probes.
#include "railpass/transport/known_rail.hpp"
#include "railpass/transport/rate.hpp"
#include "railpass/transport/rate_meter.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <random>
#include <vector>

using namespace railpass::transport;

namespace {

packet some_packet(std::mt19937_64& random, bool rail_was_busy) {
  switch (random() % 4) {
    case 0:
      return packet::credit_alone();
    case 1:
      return packet::eager(0, 0, 0, random() % 10000, rail_was_busy);
    default:
      return packet::chunk(1, 0, 1 + random() % 60000, rail_was_busy);
  }
}

}  // namespace

TEST_CASE("a rail that is steady is not found to have changed") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.08);
  rate_estimate rate(1e8, true);
  for (int k = 0; k < 20000; ++k) {
    rate.report(1e8 * std::exp(noise(random)));
    if (k % 500 == 250) rate.report(1e6);  // one wrong report
    CHECK(rate.bytes_per_s() > 0.5e8);
  }
  CHECK(rate.changes() == 0);
  for (int k = 0; k < 4; ++k) rate.report(1e7);
  CHECK(rate.bytes_per_s() == Approx(1e7).epsilon(0.1));
}

TEST_CASE("a process without a core now and then does not make a steady rail look changed") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.08);
  std::uniform_real_distribution<double> part(0.1, 0.7);
  rate_estimate rate(1e8, false);
  for (int k = 0; k < 20000; ++k) {
    // A stall shows in one of about forty reports, a long stall in three consecutive reports.
    const int place = (k + 200) % 400;
    const bool stalled = place < 3 || (place % 37 == 0 && place > 10 && place < 390);
    rate.report(1e8 * (stalled ? part(random) : std::exp(noise(random))));
    if (k > 8) REQUIRE(rate.bytes_per_s() == Approx(1e8).epsilon(0.2));
  }
  CHECK(rate.changes() == 0);
  for (int k = 0; k < 4; ++k) rate.report(1e9);
  CHECK(rate.bytes_per_s() == Approx(1e9).epsilon(0.1));
  CHECK(rate.changes() == 1);
}

TEST_CASE("what is measured of packets that follow each other is the rail's rate, pauses or not") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(0, 1);
  int reports[2] = {0, 0};
  for (int round = 0; round < 200; ++round) {
    const double rate = 1e6 * double(1 + random() % 2000);
    const bool late = round % 2 == 1;
    CAPTURE(late);
    rate_meter meter;
    double now_s = 0;
    bool paused = true;
    std::int64_t followed_bytes = 0, unreported_bytes = 0;
    for (int k = 0; k < 600; ++k) {
      if (random() % 20 == 0) {
        now_s += part(random);
        paused = true;
      }
      const packet h = some_packet(random, !paused);
      now_s += double(bytes_on_rail(h)) / rate;
      // The receiver notices an arrival within a packet's time, but does not know the exact delay.
      const double at_most_s = late ? 3e4 / rate * part(random) : 0;
      const auto got =
          meter.came(h, {.at_s = now_s + at_most_s * part(random), .late_s = at_most_s});
      unreported_bytes += bytes_on_rail(h);
      if (can_be_timed(h)) {
        if (!paused) followed_bytes += unreported_bytes;
        unreported_bytes = 0;
        paused = false;
      }
      if (!late) REQUIRE(got.has_value() == (followed_bytes >= 128 << 10));
      if (!got) continue;
      ++reports[late];
      followed_bytes = 0;
      REQUIRE(!got->of_probe);
      REQUIRE(got->bytes_per_s == Approx(rate).epsilon(late ? 0.12 : 1e-6));
    }
  }
  CHECK((reports[0] > 5000 && reports[1] > 1000));
}

TEST_CASE("the second of two probes tells the rate at once, if it was looked at in time") {
  const double rate = 1e7, first_s = 1 + (16384 + 40) / rate,
               second_s = first_s + (49152 + 40) / rate;
  const auto of = [&](double late_s) {
    rate_meter meter;
    CHECK(!meter.came(packet::probe(16384, false), {.at_s = first_s, .late_s = late_s}));
    return meter.came(packet::probe(49152, true), {.at_s = second_s, .late_s = late_s});
  };
  const auto got = of(0);
  REQUIRE(got);
  CHECK(got->of_probe);
  CHECK(got->bytes_per_s == Approx(rate));
  CHECK(of(0.04 * (second_s - first_s)));
  CHECK(!of(0.06 * (second_s - first_s)));
}

TEST_CASE("each of several peers sees its part of a rail, and the sender knows which") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    const double rate = 1e6 * double(1 + random() % 2000);
    const std::size_t n = 1 + random() % 5;
    std::vector<rate_meter> meters(n);
    std::vector<rate_share> shares(n);
    std::vector<bool> begun(n, false);
    std::int64_t given_bytes = 0;
    int reports = 0;
    for (int k = 0; k < 400; ++k) {
      const std::size_t peer = random() % n;
      const packet h = some_packet(random, begun[peer]);
      if (can_be_timed(h)) begun[peer] = true;
      shares[peer].note_given(h, given_bytes);
      given_bytes += bytes_on_rail(h);
      const auto got = meters[peer].came(h, {.at_s = double(given_bytes) / rate, .late_s = 0});
      if (!got) continue;
      ++reports;
      REQUIRE(got->bytes_per_s * shares[peer].take() == Approx(rate).epsilon(1e-6));
    }
    CHECK(reports > 10);
  }
}

TEST_CASE(
    "a rail is probed when others have carried 32 times as long as that takes, unless spare") {
  const rail_profile measured{
      .time = transfer_time(1e-5, 1e7), .handshake_s = 0, .thresholds = {}, .spare = false};
  known_rail rail(transfer_time(1e-5, 1e9), true, 1000);
  rail.know(measured, 65536);
  const double after_s = 32 * 65536 / 1e7;
  CHECK(!rail.is_to_be_probed());
  rail.note_passed_over(0.6 * after_s);
  CHECK(!rail.is_to_be_probed());
  rail.note_passed_over(0.6 * after_s);
  CHECK(rail.is_to_be_probed());
  rail.note_probed();
  CHECK(!rail.is_to_be_probed());
  // A faster probe than expected is followed by another at once, until the estimate agrees.
  int more = 0;
  do {
    rail.note_probed();
    rail.learn(1e8, true);
    ++more;
  } while (rail.is_to_be_probed() && more < 100);
  CHECK((more >= 2 && more < 20));
  CHECK(rail.bytes_per_s() == Approx(1e8).epsilon(0.1));
  CHECK(rail.time().bytes_per_s() == Approx(rail.bytes_per_s()));
  // Messages also measure the rail.
  rail.note_passed_over(10);
  CHECK(rail.is_to_be_probed());
  rail.learn(1e8, false);
  CHECK(!rail.is_to_be_probed());
  rail.know({.time = transfer_time(1e-5, 1e7), .handshake_s = 0, .thresholds = {}, .spare = true},
            65536);
  rail.note_passed_over(1e9);
  CHECK(!rail.is_to_be_probed());
}

TEST_CASE("what is told of a rail is the median of the last 32 errors, and sums") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> factor(0.5, 2);
  known_rail rail(transfer_time(1e-5, 1e8), true, 1000);
  CHECK(!rail.report().prediction_error);
  std::vector<double> errors;
  double backlog_s = 0;
  for (int k = 1; k <= 100; ++k) {
    const double reported = 1e8 * factor(random);
    errors.push_back(std::abs(reported / rail.bytes_per_s() - 1));
    rail.learn(reported, false);
    std::vector<double> last(errors.end() - std::min(k, 32), errors.end());
    std::sort(last.begin(), last.end());
    const std::size_t middle = last.size() / 2;
    const double expected =
        last.size() % 2 == 1 ? last[middle] : (last[middle - 1] + last[middle]) / 2;
    REQUIRE(*rail.report().prediction_error == Approx(expected));
    rail.note_given(packet::chunk(1, 0, 1000, true), k);
    rail.note_given(packet::probe(1000, true), k);
    rail.note_backlog(k);
    backlog_s += k;
    REQUIRE(rail.report().sent_bytes == 1000 * k);
    REQUIRE(rail.report().backlog_s == Approx(backlog_s / k));
  }

  const rail_report unused{.bytes_per_s = 7, .changes = 1};
  const rail_report used{
      .bytes_per_s = 5, .changes = 2, .sent_bytes = 100, .prediction_error = 0.25, .backlog_s = 3};
  const rail_report both = together(std::vector{unused, used});
  CHECK((both.bytes_per_s == 5 && both.changes == 3 && both.sent_bytes == 100));
  CHECK((both.prediction_error == 0.25 && both.backlog_s == 3));
  CHECK(!together(std::vector{unused}).prediction_error);
}
