// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/statistics/summary.hpp"

#include "support/catch.hpp"

using namespace railpass;
using namespace railpass::select;

namespace {

arm_statistics arm_of(std::string name, std::int64_t calls, double mean_s) {
  return {.arm = std::move(name),
          .calls = calls,
          .times = {.samples = 10, .mean_s = mean_s},
          .time_s = double(calls) * mean_s};
}

/// `gain` times as fast as native, with that doubt.
arm_statistics paired_arm(std::string name, std::int64_t calls, double mean_s, double gain,
                          double deviation) {
  arm_statistics a = arm_of(std::move(name), calls, mean_s);
  a.pairs = pair_record{
      .pairs = 10, .wins = gain < 1 ? 1 : 9, .gain = std::log(gain), .deviation = deviation};
  return a;
}

context_statistics context_of(std::string collective, std::vector<arm_statistics> arms) {
  context_statistics c{.collective = std::move(collective),
                       .num_ranks = 8,
                       .from_bytes = 65536,
                       .to_bytes = 131071,
                       .current_arm = arms.back().arm,
                       .arms = std::move(arms)};
  for (const arm_statistics& a : c.arms) {
    c.calls += a.calls;
    c.time_s += a.time_s;
  }
  return c;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what was saved: by pairs, or for a few calls by what they took") {
  const auto c = context_of("broadcast", {arm_of("native", 5, 9), arm_of("bad", 2, 12),
                                          paired_arm("good", 100, 1, 2, 0.1)});
  const auto saved = saved_s(c);
  REQUIRE(saved);
  // That native once took 9 does not say what it took beside the good arm.
  CHECK(saved->value == Approx(100 * (2 - 1) + 2 * (9 - 12)));
  CHECK(saved->deviation == Approx(std::hypot(100 * 2 * 0.1, 24 / 2.0)));
}

TEST_CASE("errors of several arms add up as independent ones") {
  const auto c = context_of("broadcast", {arm_of("native", 5, 2), paired_arm("a", 30, 1, 1, 0.1),
                                          paired_arm("b", 40, 1, 1, 0.1)});
  CHECK(saved_s(c)->deviation == Approx(5));
}

TEST_CASE("calls by native neither save nor cost, and err in nothing, timed or not") {
  arm_statistics native = arm_of("native", 1000, 1);
  if (GENERATE(false, true)) native.times.mean_s = 0;
  const auto saved = saved_s(context_of("barrier", {native}));
  REQUIRE(saved);
  CHECK(saved->value == 0);
  CHECK(saved->deviation == 0);
}

TEST_CASE("nothing is claimed where native was not timed, or met too seldom") {
  arm_statistics native = arm_of("native", 1, 1), good = arm_of("good", 100, 1);
  SECTION("never timed") { native.times.mean_s = 0; }
  SECTION("never met") {}
  SECTION("met once") { good.pairs = pair_record{.pairs = 1, .wins = 1, .gain = 2}; }
  const auto c = context_of("broadcast", {native, good});
  CHECK_FALSE(saved_s(c));
  const std::string text = summary_of({.merges = 0, .contexts = {c}});
  CHECK(contains(text, "cannot tell whether tuning paid: the MPI library's own"));
  CHECK_FALSE(contains(text, "gains"));
}

TEST_CASE("neither more nor less is claimed where the interval has both") {
  const std::string text =
      summary_of({.merges = 0,
                  .contexts = {context_of("broadcast", {arm_of("native", 5, 2),
                                                        paired_arm("ring", 10, 1.9, 1.05, 0.1)})}});
  INFO(text);
  CHECK(contains(text, "cannot tell whether tuning paid: between -"));
}

TEST_CASE("a loss is called one") {
  const std::string text =
      summary_of({.merges = 0,
                  .contexts = {context_of("broadcast", {arm_of("native", 5, 2),
                                                        paired_arm("ring", 100, 2, 0.9, 0.01)})}});
  INFO(text);
  CHECK(contains(text, "slower than with the MPI library's own collectives, by 20.0 s"));
  CHECK(contains(text, "16.5 s to 23.5 s"));
}

TEST_CASE("what railpass itself took is counted in, by every rank that shares the core") {
  auto c = context_of("broadcast", {arm_of("native", 5, 2), paired_arm("ring", 95, 2, 1.1, 0.01)});
  c.own_s = 0.05;  // 5 s of 19 saved
  statistics_dump dump{.contexts = {c}};
  dump.machine_id.cores_per_host = 8;
  const std::string own_cores = summary_of(dump);
  INFO(own_cores);
  CHECK(contains(own_cores, "faster than with the MPI library's own collectives, by 14.0 s"));
  CHECK(contains(own_cores, "learning and 5.00 s of railpass's own overhead counted in"));
  CHECK(contains(own_cores, "on 8 ranks, 14.0 s by ring"));

  dump.contexts[0].ranks_per_node = 32;
  const std::string shared_cores = summary_of(dump);
  INFO(shared_cores);
  CHECK(contains(shared_cores, "cannot tell whether tuning paid: between -"));
  CHECK(contains(shared_cores, "5.00 s to 20.0 s of railpass's own overhead"));
  CHECK_FALSE(contains(shared_cores, "gains"));

  dump.contexts[0].own_s = 0.3;
  CHECK(contains(summary_of(dump), "slower than with"));
}

TEST_CASE("no gain is claimed of time that went by in other calls as well") {
  auto c = context_of("broadcast", {arm_of("native", 5, 2), paired_arm("ring", 95, 2, 1.1, 0.01)});
  c.overlapped_share = 0.02;  // 4 s of 19 saved
  CHECK(contains(summary_of({.contexts = {c}}), "by 19.0 s (95 % interval: 10.9 s to 23.1 s)"));
  c.overlapped_share = 0.3;
  const std::string text = summary_of({.contexts = {c}});
  INFO(text);
  CHECK(contains(text,
                 "cannot tell whether tuning paid: between -4.10 s and 23.1 s saved (95 % "
                 "interval, as calls of different ranks overlapped)"));
  CHECK_FALSE(contains(text, "gains"));
}

TEST_CASE("what learning cost is told whether calls overlap or not, to within half of it") {
  auto c = context_of("broadcast", {arm_of("native", 100, 2)});
  c.overlapped_share = 0.3;
  const std::string text = summary_of({.merge_cost_s = 5, .contexts = {c}});
  INFO(text);
  CHECK(contains(text,
                 "slower than with the MPI library's own collectives, by 5.00 s "
                 "(95 % interval: 100 ms to 9.90 s), 5.00 s spent on learning"));
}

TEST_CASE("a verdict never rests on an arm that met native too seldom") {
  const auto c = context_of("broadcast", {arm_of("native", 5, 2), arm_of("bad", 20, 50)});
  CHECK(contains(summary_of({.contexts = {c}}), "cannot tell whether tuning paid: between"));
}

TEST_CASE("the paragraph") {
  const auto good =
      context_of("broadcast", {arm_of("native", 5, 2), paired_arm("ring", 100, 1, 2, 0.01)});
  const auto noise =
      context_of("reduce", {arm_of("native", 5, 2), paired_arm("linear", 10, 1, 2, 0.6)});
  const auto unknown = context_of("broadcast", {arm_of("native", 0, 2), arm_of("linear", 100, 1)});
  const std::string text =
      summary_of({.merges = 3, .merge_cost_s = 4, .contexts = {noise, good, unknown}});
  INFO(text);
  CHECK(text.starts_with("faster than with the MPI library's own collectives, by 106 s"));
  CHECK(contains(text, "4.00 s spent on learning"));  // counted in: 100 and 10, less that
  CHECK(contains(text,
                 "220 calls of 2 tuned collectives (reduce, broadcast) took 230 s in 3 contexts"));
  CHECK(contains(text, "1 contexts in which the MPI library's own was timed too seldom"));
  CHECK(contains(text, "broadcast of 64KiB to below 128KiB on 8 ranks, 100 s by ring"));
  CHECK_FALSE(contains(text, "by linear"));  // cannot be told from noise
}

TEST_CASE("of pinned arms is said what they took, and that nothing ran beside them") {
  auto pinned = context_of("reduce", {arm_of("ring", 100, 0.01)});
  pinned.policy = "fixed";
  const std::string text = summary_of({.merge_cost_s = 0.1, .contexts = {pinned}});
  INFO(text);
  CHECK(text ==
        "settings pinned all arms, so the MPI library's own collectives did not run, and nothing "
        "can be compared. "
        "100 calls of 1 collectives (reduce) took 1.00 s in 1 contexts.");
  const auto tuned =
      context_of("broadcast", {arm_of("native", 5, 2), paired_arm("ring", 100, 1, 2, 0.01)});
  const std::string both = summary_of({.contexts = {tuned, pinned}});
  INFO(both);
  CHECK(both.starts_with("faster than"));
  CHECK(contains(both, "1 contexts whose arms settings pinned are not counted."));
}

TEST_CASE("a program that tuned nothing") {
  CHECK(contains(summary_of({}), "or settings pinned them"));
}
