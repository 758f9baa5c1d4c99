// SPDX-License-Identifier: BSL-1.0
//
// What merging the ranks' times is expected to cost the calls around it, until some was measured.
#pragma once

#include "collectives/algorithm.hpp"

#include <algorithm>
#include <bit>

namespace railpass::select {

/// Of one merge: spread over calls, where what a rank receives is there when it looks; and within
/// one call, where the messages follow each other up the tree and down again. These are guesses of
/// an unknown machine.
struct merge_costs {
  double spread_s = 8e-6;
  double at_once_s = 30e-6;
};

/// On a machine: a rank receives and sends at most two messages per level of the tree.
inline merge_costs expected_merge_costs(const machine_model& machine, int num_ranks,
                                        int ranks_per_node) {
  constexpr double report_bytes = 256;
  const cost_query all{
      .machine = machine, .num_ranks = num_ranks, .ranks_per_node = ranks_per_node};
  const link_model& link = all.slowest_link();
  const link_piece& piece = link.piece(report_bytes);
  const double messages = 2 * std::bit_width(unsigned(std::max(1, num_ranks) - 1));
  return {.spread_s = messages * (piece.send_overhead_s + piece.receive_overhead_s),
          .at_once_s = messages * link.one_way_s(report_bytes)};
}

}  // namespace railpass::select
