// SPDX-License-Identifier: BSL-1.0
//
// In which calls ranks make the steps of a merge: what one receives has been sent a level's calls
// ago, and all end in the same call.
#include "railpass/select/lockstep/merge_steps.hpp"

#include "support/catch.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

using namespace railpass::select;

namespace {

/// When messages of a merge were sent, by sender and receiver.
struct sent_messages {
  std::map<std::pair<int, int>, std::int64_t> reports, replies;
};

// Makes a step; returns the call in which what it receives was sent, -1 if it receives nothing.
std::int64_t make_step(int rank, merge_steps& steps, sent_messages& sent) {
  const tree_position tree = steps.tree();
  const int child =
      steps.child() >= 0 && steps.child() < tree.num_children() ? tree.child(steps.child()) : -1;
  switch (steps.due()) {
    case merge_step::post:
      steps.posted();
      return -1;
    case merge_step::collect:
      steps.collected();
      return sent.reports.at({child, rank});
    case merge_step::report:
      if (rank == 0) {
        steps.received();
        return -1;
      }
      steps.reported();
      sent.reports[{rank, tree.parent()}] = steps.calls();
      return -1;
    case merge_step::receive:
      steps.received();
      return sent.replies.at({tree.parent(), rank});
    case merge_step::deliver:
      steps.delivered();
      sent.replies[{rank, child}] = steps.calls();
      return -1;
    case merge_step::consume:
      steps.consumed(7, steps.pace());
      return -1;
    case merge_step::none:
      break;
  }
  FAIL("no step is due");
  return -1;
}

}  // namespace

TEST_CASE("a merge spread over calls never waits, and ends on all ranks at once") {
  for (const int pace : {1, 3})
    for (int num_ranks = 1; num_ranks <= 40; ++num_ranks) {
      CAPTURE(pace, num_ranks);
      std::vector<merge_steps> all;
      for (int r = 0; r < num_ranks; ++r) {
        all.emplace_back(r, num_ranks);
        all.back().hasten(2, pace);
      }
      sent_messages sent;
      const std::int64_t ends_at = 2 + 2 * pace * all[0].spread_height();
      for (std::int64_t call = 1; call <= ends_at; ++call)
        // Those with higher numbers are below: what they send now must not be needed now.
        for (int r = 0; r < num_ranks; ++r) {
          merge_steps& steps = all[std::size_t(r)];
          int receives = 0;
          for (bool due = steps.begin_call(); due; due = steps.due() != merge_step::none)
            if (const std::int64_t at = make_step(r, steps, sent); at >= 0) {
              REQUIRE(at == call - pace);
              ++receives;
            }
          REQUIRE(receives <= 1);
          REQUIRE((steps.outstanding() == merge_step::none) == (call < 2 || call == ends_at));
        }
      for (merge_steps& steps : all) {
        for (int call = 0; call < 6; ++call) REQUIRE_FALSE(steps.begin_call());
        REQUIRE(steps.begin_call());
        REQUIRE(steps.due() == merge_step::post);
      }
    }
}

TEST_CASE("a merge that is hastened begins sooner, never later, and after what is under way") {
  const auto calls_until_post = [](merge_steps& steps) {
    for (int call = 1;; ++call)
      if (steps.begin_call()) return call;
  };
  const auto merge_alone = [](merge_steps& steps, std::int32_t gap) {
    steps.posted();
    steps.received();
    steps.consumed(gap, 1);
  };
  merge_steps alone(0, 1);
  CHECK(calls_until_post(alone) == 2);
  merge_alone(alone, 1000);
  alone.hasten(2000, 0);
  CHECK(alone.pace() == 1);
  alone.hasten(5, 0);
  CHECK(alone.pace() == 0);
  alone.hasten(7, 1);
  CHECK(alone.pace() == 0);
  CHECK(calls_until_post(alone) == 5);
  alone.posted();
  alone.hasten(3, 0);
  alone.received();
  alone.consumed(1000, 1);
  CHECK(alone.pace() == 1);
  CHECK(calls_until_post(alone) == 3);
  merge_alone(alone, 10);  // that was for one merge
  CHECK(calls_until_post(alone) == 10);
  alone.posted();
  alone.hasten(0, 0);  // by then over
  alone.received();
  alone.consumed(10, 1);
  CHECK(calls_until_post(alone) == 1);
}

TEST_CASE("a merge made at once has all its steps in one call, along the wider tree") {
  merge_steps leader(0, 16);
  leader.hasten(2, 0);
  REQUIRE(leader.tree().radix == 4);
  REQUIRE(leader.calls_to_reply() == 0);
  leader.begin_call();
  REQUIRE(leader.begin_call());
  std::vector<merge_step> made;
  while (leader.due() != merge_step::none) {
    made.push_back(leader.due());
    switch (leader.due()) {
      case merge_step::post:
        leader.posted();
        break;
      case merge_step::collect:
        leader.collected();
        break;
      case merge_step::report:
        leader.received();
        break;
      case merge_step::deliver:
        leader.delivered();
        break;
      default:
        leader.consumed_last();
    }
  }
  REQUIRE(made.size() == 1 + 6 + 1 + 6 + 1);
  REQUIRE(made.back() == merge_step::consume);
  for (int call = 0; call < 1000; ++call) REQUIRE_FALSE(leader.begin_call());
}
