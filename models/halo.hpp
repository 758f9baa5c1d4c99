// SPDX-License-Identifier: BSL-1.0
//
// What a halo exchange costs in a grid of ranks, and the grid in which it costs the least.
#pragma once

#include "models/machine.hpp"
#include "railpass/base/process_grid.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace railpass {

/// Data of D dimensions that are to be distributed.
struct grid_query {
  const machine_model& machine;
  std::vector<std::int64_t> global{};  ///< elements in each dimension
  std::vector<bool> periodic{};
  std::int64_t width = 1;  ///< elements that neighbours need of each other
  double element_bytes = 8;
  bool corners = false;
  std::vector<int> host_of_rank{};  ///< numbered from 0 on
};

/// The elements of block `at` where `elements` are cut into so many blocks, as equal as possible.
constexpr std::int64_t block_elements(std::int64_t elements, int blocks, int at) {
  return elements / blocks + (at < elements % blocks ? 1 : 0);
}

/// The time of an exchange in which all send at once: what the busiest host sends to others over
/// its links, one message after the other, what the busiest rank does for its messages, and the way
/// of the slowest one.
inline double exchange_s(const grid_query& q, const process_grid& grid) {
  const std::vector<bool> all(q.global.size(), true);
  const std::vector<std::vector<int>> neighbours = steps_to_neighbours(all, q.corners);
  std::vector<double> links_s(q.host_of_rank.size());  // by host; there are not more
  double busiest_rank_s = 0, slowest_way_s = 0;
  for (int rank = 0; rank < int(q.host_of_rank.size()); ++rank) {
    const std::vector<int> at = grid.coordinates(rank);
    const int host = q.host_of_rank[std::size_t(rank)];
    double rank_s = 0;
    for (const std::vector<int>& steps : neighbours) {
      const int peer = grid.neighbour(rank, steps);
      if (peer == process_grid::no_rank) continue;
      double bytes = q.element_bytes;
      for (std::size_t k = 0; k < at.size(); ++k)
        bytes *=
            double(steps[k] != 0 ? q.width : block_elements(q.global[k], grid.extents[k], at[k]));
      if (peer == rank) {
        rank_s += q.machine.copy.time_s(bytes);
        continue;
      }
      const bool same_host = q.host_of_rank[std::size_t(peer)] == host;
      const link_model& link = same_host ? q.machine.same_node : q.machine.across_nodes;
      rank_s += link.receiving_s(bytes) + (same_host ? link.busy_s(bytes) : link.sending_s(bytes));
      if (!same_host)
        links_s[std::size_t(host)] += link.busy_s(bytes) / std::max(1, q.machine.rails_per_node);
      const link_piece& piece = link.piece(bytes);
      slowest_way_s = std::max(slowest_way_s, piece.latency_s + bytes * piece.latency_s_per_byte);
    }
    busiest_rank_s = std::max(busiest_rank_s, rank_s);
  }
  return busiest_rank_s + slowest_way_s + *std::max_element(links_s.begin(), links_s.end());
}

namespace detail {

// Calls `found` with every way to write `ranks` as a product, the largest first factors first.
template <class F>
void each_grid(std::vector<int>& factors, std::size_t k, int ranks, const F& found) {
  if (k + 1 == factors.size()) {
    factors[k] = ranks;
    found(factors);
    return;
  }
  for (int f = ranks; f >= 1; --f) {
    if (ranks % f != 0) continue;
    factors[k] = f;
    each_grid(factors, k + 1, ranks / f, found);
  }
}

}  // namespace detail

/// The grid of all ranks in which an exchange takes the least. Of equal ones that which cuts the
/// first dimensions most often, whose sides lie together in memory. Empty if blocks would be
/// smaller than the width in every grid.
inline std::vector<int> best_grid(const grid_query& q) {
  std::vector<int> best;
  double least_s = 0;
  std::vector<int> factors(q.global.size());
  detail::each_grid(factors, 0, int(q.host_of_rank.size()), [&](const std::vector<int>& grid) {
    for (std::size_t k = 0; k < grid.size(); ++k)
      if (q.global[k] / grid[k] < std::max<std::int64_t>(1, q.width)) return;
    const double seconds = exchange_s(q, {grid, q.periodic});
    // Sums of the same times in another order are not quite equal.
    if (!best.empty() && seconds > least_s * (1 - 1e-9)) return;
    best = grid;
    least_s = seconds;
  });
  return best;
}

}  // namespace railpass
