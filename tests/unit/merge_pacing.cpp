// SPDX-License-Identifier: BSL-1.0
//
// When the next merge is, and whether within one call, from what merges cost.
#include "railpass/select/lockstep/merge_pacing.hpp"

#include "support/catch.hpp"

using namespace railpass::select;

namespace {

/// Calls of one context that wants a plan every 4 of them; each takes `call_s`.
merge_demand demand_of(double calls, double call_s, int shortest_plan = 4) {
  return {.calls = calls,
          .calls_s = calls * call_s,
          .call_s = call_s,
          .gap = 4,
          .shortest_plan = shortest_plan};
}

}  // namespace

TEST_CASE("merges cost no more than their share of the calls and a few free ones") {
  constexpr double call_s = 1e-3, merge_s = 2e-3;
  merge_pacing pacing(1, {.spread_s = 2e-3, .at_once_s = 1});
  double now_s = 0, calls = 4;
  next_merge next;
  for (int merge = 0; merge < 100; ++merge) {
    now_s += calls * call_s;
    pacing.charge(next.pace, merge_s, 0);
    next = pacing.next(demand_of(calls, call_s), 1, now_s);
    REQUIRE(next.pace == 1);
    calls = next.gap + 1;
    if (merge < 3) CHECK(next.gap == 4);  // free, as early as wanted
  }
  // The sender and the receiver of each message spend something.
  CHECK(pacing.spread_cost_s() == Approx(merge_s + 1e-3));
  CHECK(pacing.all_cost_s() <= 0.0101 * now_s + 5 * pacing.spread_cost_s());
  CHECK(pacing.all_cost_s() >= 0.0099 * now_s);
  CHECK(next.samples == merge_report::max_samples);
}

TEST_CASE("one merge that a late rank held up does not silence the learning") {
  merge_pacing pacing(1, {.spread_s = 1e-5, .at_once_s = 1});
  for (int merge = 0; merge < 8; ++merge) {
    pacing.charge(1, merge == 4 ? 10.0 : 1e-5, 0);
    (void)pacing.next(demand_of(100, 1e-3), 1, 0.1 * merge);
  }
  CHECK(pacing.spread_cost_s() < 5e-5);
}

TEST_CASE("merges slow down the calls beside them where ranks share cores") {
  const auto cost_with = [](double slowdown) {
    merge_pacing pacing(3);
    for (int merge = 0; merge < 8; ++merge) {
      pacing.charge(1, 1e-5, slowdown);
      (void)pacing.next(demand_of(100, 1e-3), 3, 0.1 * merge);
    }
    return pacing.spread_cost_s();
  };
  CHECK(cost_with(0) < 2e-5);
  CHECK(cost_with(0.1) == Approx(6 * 0.1 * 1e-3).epsilon(0.5));  // three levels, there and back
}

TEST_CASE("merges are made at once while much is to be learnt or where a plan is wanted soon") {
  merge_pacing pacing(3, {.spread_s = 1e-6, .at_once_s = 1e-5});
  const auto pace_of = [&](double call_s, int shortest_plan) {
    return pacing.next(demand_of(100, call_s, shortest_plan), 0, 0).pace;
  };
  const auto first_pace = [&](double call_s, bool all_wait) {
    return pacing.after_first_plan(call_s, call_s, all_wait, 100, 0).pace;
  };
  CHECK(first_pace(1e-5, false) == 0);
  CHECK(first_pace(9e-6, false) == 1);
  CHECK(first_pace(9e-6, true) == 0);  // all wait: an untried arm holds up everybody
  CHECK(pace_of(1e-5, 100) == 1);      // as long as a merge
  for (int merge = 1; merge < 12; ++merge) CHECK(pace_of(1e-3, 100) == 0);
  CHECK(pace_of(1e-3, 100) == 1);
  CHECK(pace_of(1e-3, 5) == 0);  // fewer calls than a merge takes that is spread over six
  CHECK(pace_of(1e-3, 6) == 1);
}

TEST_CASE("a merge is hastened for a context that begins, as soon as its calls can pay for it") {
  merge_pacing pacing(3, {.spread_s = 1e-6, .at_once_s = 1e-5});
  const auto hastened = [&](int plan_length, double calls_since = 0, double least_s = 1e-4) {
    return pacing.after_first_plan(1e-4, least_s, false, plan_length, calls_since);
  };
  CHECK(hastened(100).gap == 1);  // the very first one
  merge_demand rare = demand_of(1e4, 1e-4);
  rare.gap = 1e6;
  REQUIRE(pacing.next(rare, 0, 1).gap == 1000000);
  CHECK(hastened(3).gap == 3);
  CHECK(hastened(3).pace == 0);
  CHECK(hastened(longest_epoch).gap == longest_epoch);  // native for good wants none
  for (int merge = 0; merge < 40; ++merge) {
    pacing.charge(1, 1e-2, 0);
    (void)pacing.next(demand_of(1, 1e-4), 0, 1 + 1e-4 * (merge + 1));
  }
  const auto paid_after = double(hastened(3).gap);
  CHECK(paid_after > 1000);
  CHECK(hastened(3, 1000).gap == Approx(paid_after - 1000).margin(1));
  CHECK(hastened(3, 0, 1e-2).gap == Approx(paid_after / 100).margin(1));  // longer calls pay sooner
  CHECK(hastened(3, 1e6).gap == 3);  // which 100 s of calls have paid for since
  CHECK(hastened(3, 0, 0).gap == longest_epoch);
}

TEST_CASE("where no tuned context is used merges become rare") {
  merge_pacing pacing(1);
  CHECK(pacing.next({.calls = 50}, 1, 0).gap == 100);
  CHECK(pacing.next({.calls = 101}, 1, 0).gap == 202);
}

TEST_CASE(
    "calls that take more time than passes overlap, computing between others does not hide it") {
  merge_pacing pacing(1);
  double now_s = 0;
  CHECK(pacing.overlapped_share() == 0);
  for (int merge = 0; merge < 40; ++merge) {
    const bool computes = merge >= 20;
    now_s += computes ? 1.0 : 0.06;  // 100 calls of 1 ms
    (void)pacing.next(demand_of(100, 1e-3), 1, now_s);
  }
  CHECK(pacing.overlapped_share() == Approx(0.4 * 19 / 40));  // the first look has none before it
}
