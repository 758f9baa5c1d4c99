// SPDX-License-Identifier: BSL-1.0
//
// The expected cost of a synchronisation ("merge") for the calls around it, until it is measured.
#pragma once

#include "collectives/blocks.hpp"
#include "railpass/select/lockstep/merge_tree.hpp"

#include <algorithm>

namespace railpass::select {

/// Costs of one synchronisation, in seconds. Spread over calls, a received message has already
/// arrived; within one call, messages follow each other up the tree and down. The defaults are
/// guesses for an unknown machine.
struct merge_costs {
  double spread_s = 8e-6;
  double at_once_s = 30e-6;
  double ask_s = 10e-6;  ///< asking all ranks for two numbers
};

/// The expected costs on a machine.
inline merge_costs expected_merge_costs(const machine_model& machine, int num_ranks,
                                        int ranks_per_node) {
  constexpr double report_bytes = 256;
  const cost_query all{
      .machine = machine, .num_ranks = num_ranks, .ranks_per_node = ranks_per_node};
  const link_model& link = all.slowest_link();
  const double overheads_s = link.sending_s(report_bytes) + link.receiving_s(report_bytes);
  // Within one call, each level costs one latency, and overheads for its other children.
  const auto [spread, at_once] = merge_trees(0, num_ranks);
  const int others = at_once.num_children() - at_once.height();
  return {.spread_s = 2 * spread.height() * overheads_s,
          .at_once_s = 2 * at_once.height() * link.one_way_s(report_bytes) + others * overheads_s,
          .ask_s = collectives::asking_s(all)};
}

/// Measures how much longer calls take beside a synchronisation that is spread over them. If ranks
/// share cores, the work of one rank delays other ranks, all ranks are woken more often, and no
/// rank's own clock shows the delay. Example: 8 ranks on 2 cores over TCP: 165 to 250 us, of which
/// the busiest rank spends 22.
class merge_slowdown {
 public:
  /// Learns from a call in which all ranks wait for all.
  /// @param ratio measured time over expected time
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
  // Initial guesses, weighted like this many calls.
  kind beside_{.calls = 10, .mean = 1.1}, between_{.calls = 10, .mean = 1};
};

}  // namespace railpass::select
