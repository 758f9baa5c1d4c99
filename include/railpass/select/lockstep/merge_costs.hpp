// SPDX-License-Identifier: BSL-1.0
//
// What merging the ranks' times is expected to cost the calls around it, until some was measured.
#pragma once

#include "collectives/algorithm.hpp"
#include "railpass/select/lockstep/merge_tree.hpp"

#include <algorithm>

namespace railpass::select {

/// Of one merge: spread over calls, where what a rank receives is there when it looks; and within
/// one call, where the messages follow each other up the tree and down again. These are guesses of
/// an unknown machine.
struct merge_costs {
  double spread_s = 8e-6;
  double at_once_s = 30e-6;
  double ask_s = 10e-6;  ///< of asking all ranks for one number
};

/// On a machine.
inline merge_costs expected_merge_costs(const machine_model& machine, int num_ranks,
                                        int ranks_per_node) {
  constexpr double report_bytes = 256;
  const cost_query all{
      .machine = machine, .num_ranks = num_ranks, .ranks_per_node = ranks_per_node};
  const link_model& link = all.slowest_link();
  const double overheads_s = link.sending_s(report_bytes) + link.receiving_s(report_bytes);
  // In one call latency counts once on each level, and overheads for all other children there.
  const auto [spread, at_once] = merge_trees(0, num_ranks);
  const int others = at_once.num_children() - at_once.height();
  return {.spread_s = 2 * spread.height() * overheads_s,
          .at_once_s = 2 * at_once.height() * link.one_way_s(report_bytes) + others * overheads_s,
          .ask_s = 2 * spread.height() * link.one_way_s(sizeof(std::int64_t))};
}

/// How much longer calls take beside a merge that is spread over them. Where ranks share cores what
/// one of them does for it holds up others, all are woken more often, and no rank's own clock shows
/// that (8 ranks of 2 cores over TCP: 165 to 250 us, of which the busiest rank spends 22).
class merge_slowdown {
 public:
  /// Of a call in which all ranks wait for all: what it took, in times of what was expected.
  void learn(double ratio, bool beside_merge) {
    kind& k = beside_merge ? beside_ : between_;
    k.calls = std::min(k.calls + 1, memory);
    k.mean += (std::clamp(ratio, 0.5, 2.0) - k.mean) / k.calls;
  }

  /// In calls.
  double of_a_call() const { return std::max(0.0, beside_.mean - between_.mean); }

 private:
  struct kind {
    double calls = 0, mean = 0;
  };
  static constexpr double memory = 256;  // calls
  // A guess, which weighs as much as so many calls.
  kind beside_{.calls = 10, .mean = 1.1}, between_{.calls = 10, .mean = 1};
};

}  // namespace railpass::select
