// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/summary.hpp"

#include "support/catch.hpp"

using namespace railpass;
using namespace railpass::select;

namespace {

arm_statistics arm_of(std::string name, std::int64_t calls, double mean_s, double spread) {
  return {.arm = std::move(name),
          .calls = calls,
          .samples = 10,
          .time_s = double(calls) * mean_s,
          .posterior = belief_record{mean_s, spread}};
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

TEST_CASE("what was saved: other arms' calls, against what native takes") {
  const auto c = context_of("broadcast", {arm_of("native", 5, 2, 0.1), arm_of("bad", 2, 4, 0),
                                          arm_of("good", 100, 1, 0)});
  const auto saved = saved_s(c);
  REQUIRE(saved);
  CHECK(saved->value == Approx(100 * (2 - 1) + 2 * (2 - 4)));
  CHECK(saved->deviation == Approx(102 * 2 * 0.1));  // native's mean errs for all of them together
}

TEST_CASE("errors of several arms add up as independent ones") {
  const auto c = context_of(
      "broadcast", {arm_of("native", 5, 2, 0), arm_of("a", 30, 1, 0.1), arm_of("b", 40, 1, 0.1)});
  CHECK(saved_s(c)->deviation == Approx(5));
}

TEST_CASE("calls of an arm of which little is known count as they were measured") {
  // One slow call on a noisy machine: a belief in whose mean nobody would believe.
  arm_statistics tried = arm_of("mesh", 1, 0.01, 3);
  tried.posterior->mean_s = 23.5;
  const auto c = context_of("broadcast", {arm_of("native", 5, 2, 0), tried});
  CHECK(saved_s(c)->value == Approx(2 - 0.01));
  CHECK(saved_s(c)->deviation == 0);
}

TEST_CASE("calls by native neither save nor cost, and err in nothing") {
  const auto saved = saved_s(context_of("barrier", {arm_of("native", 1000, 1, 0.8)}));
  REQUIRE(saved);
  CHECK(saved->value == 0);
  CHECK(saved->deviation == 0);
}

TEST_CASE("nothing is claimed where native was not timed, or hardly") {
  arm_statistics native = arm_of("native", 0, 1, 0.3);
  if (GENERATE(true, false))
    native.samples = 0;
  else
    native.posterior->spread = 0.8;
  const auto c = context_of("broadcast", {native, arm_of("good", 100, 1, 0)});
  CHECK_FALSE(saved_s(c));
  const std::string text = summary_of({.merges = 0, .contexts = {c}});
  CHECK(contains(text, "is not known"));
  CHECK_FALSE(contains(text, "gains"));
}

TEST_CASE("neither more nor less is claimed where the interval has both") {
  const std::string text =
      summary_of({.merges = 0,
                  .contexts = {context_of(
                      "broadcast", {arm_of("native", 5, 2, 0.4), arm_of("ring", 10, 1.9, 0)})}});
  INFO(text);
  CHECK(contains(text, "more or less cannot be told (95 % interval: -"));
}

TEST_CASE("the paragraph") {
  const auto good =
      context_of("broadcast", {arm_of("native", 5, 2, 0.01), arm_of("ring", 100, 1, 0)});
  const auto noise =
      context_of("reduce", {arm_of("native", 5, 2, 0.5), arm_of("linear", 10, 1, 0.5)});
  auto unknown = context_of("broadcast", {arm_of("native", 0, 2, 1), arm_of("linear", 10, 1, 1)});
  unknown.arms[0].samples = 0;
  const std::string text =
      summary_of({.merges = 3, .merge_cost_s = 4, .contexts = {noise, good, unknown}});
  INFO(text);
  CHECK(contains(text,
                 "130 calls of 2 tuned collectives (reduce, broadcast) took 140 s in 3 contexts"));
  CHECK(contains(text, "about 106 s more"));  // 100 and 10, less what merges cost
  CHECK(contains(text, "4.00 s spent on learning"));
  CHECK(contains(text, "1 contexts in which these were timed too seldom"));
  CHECK(contains(text, "broadcast of 64KiB to below 128KiB on 8 ranks, 100 s by ring"));
  CHECK_FALSE(contains(text, "by linear"));  // cannot be told from noise
}

TEST_CASE("a program that tuned nothing") { CHECK(contains(summary_of({}), "nothing was tuned")); }
