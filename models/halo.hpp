// SPDX-License-Identifier: BSL-1.0
//
// The cost of a halo exchange in a grid of ranks, and the grid with the lowest cost. The exchange
// itself is in lib/halo.
#pragma once

#include "models/machine.hpp"
#include "railpass/base/hash.hpp"
#include "railpass/base/process_grid.hpp"
#include "railpass/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace railpass {

/// D-dimensional data to distribute.
struct grid_query {
  const machine_model& machine;
  std::vector<std::int64_t> global{};  ///< elements in each dimension
  std::vector<bool> periodic{};
  std::int64_t width = 1;  ///< halo elements at each side
  double element_bytes = 8;
  bool corners = false;
  std::vector<int> host_of_rank{};  ///< numbered from 0 on
  /// The ranks whose messages count: see judge_ranks(). Empty: all.
  std::vector<int> judged{};

  std::vector<int> judged_ranks() const {
    if (!judged.empty()) return judged;
    std::vector<int> all(host_of_rank.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
};

/// The elements of block `at` if `elements` are cut into `blocks` blocks, as equal as possible.
constexpr std::int64_t block_elements(std::int64_t elements, int blocks, int at) {
  return elements / blocks + (at < elements % blocks ? 1 : 0);
}

/// Bytes of the message that the rank at `at` sends `steps` steps away.
inline double message_bytes(const grid_query& q, const process_grid& grid,
                            const std::vector<int>& at, const std::vector<int>& steps) {
  double bytes = q.element_bytes;
  for (std::size_t k = 0; k < at.size(); ++k)
    bytes *= double(steps[k] != 0 ? q.width : block_elements(q.global[k], grid.extents[k], at[k]));
  return bytes;
}

/// The longest message between different ranks in bytes, for each pair of opposite directions, as
/// in longest_by_side().
inline std::vector<std::int64_t> message_lengths(const grid_query& q, const process_grid& grid,
                                                 std::size_t most) {
  const std::vector<bool> all(q.global.size(), true);
  const std::vector<int> ranks = q.judged_ranks();
  std::vector<std::int64_t> longest;
  for (const std::vector<int>& steps : steps_to_neighbours(all, q.corners)) {
    longest.push_back(0);
    for (const int rank : ranks)
      if (const int peer = grid.neighbour(rank, steps);
          peer != rank && peer != process_grid::no_rank)
        longest.back() = std::max(
            longest.back(), std::int64_t(message_bytes(q, grid, grid.coordinates(rank), steps)));
  }
  return longest_by_side(longest, most);
}

/// The time of an exchange in which all ranks send at once. It adds the messages that the busiest
/// host sends over its links one after the other, the work of the busiest rank, and the transfer of
/// the slowest message.
inline double exchange_s(const grid_query& q, const process_grid& grid) {
  const std::vector<bool> all(q.global.size(), true);
  const std::vector<std::vector<int>> neighbours = steps_to_neighbours(all, q.corners);
  std::vector<double> links_s(q.host_of_rank.size());  // by host; not more entries than ranks
  double busiest_rank_s = 0, slowest_way_s = 0;
  for (const int rank : q.judged_ranks()) {
    const std::vector<int> at = grid.coordinates(rank);
    const int host = q.host_of_rank[std::size_t(rank)];
    double rank_s = 0;
    for (const std::vector<int>& steps : neighbours) {
      const int peer = grid.neighbour(rank, steps);
      if (peer == process_grid::no_rank) continue;
      const double bytes = message_bytes(q, grid, at, steps);
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

// Calls `found` for every factorisation of `ranks`, the largest first factors first.
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

/// Lets all ranks count, or, where looking at all in every grid would take more than seconds, those
/// of some hosts, drawn from all.
inline void judge_ranks(grid_query& q) {
  constexpr double most_looks = 1e7;
  double grids = 0;
  std::vector<int> factors(q.global.size());
  const auto ranks = int(q.host_of_rank.size());
  detail::each_grid(factors, 0, ranks, [&](const std::vector<int>&) { ++grids; });
  const std::vector<bool> all(q.global.size(), true);
  const double looks = grids * double(steps_to_neighbours(all, q.corners).size()) * ranks;
  const int hosts = 1 + *std::ranges::max_element(q.host_of_rank);
  const int chosen = std::clamp(int(hosts * std::min(1.0, most_looks / looks)), 1, hosts);
  std::vector<int> order(std::size_t(hosts), 0);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [](int host) { return scattered(std::uint64_t(host) + 1); });
  std::vector<bool> is_chosen(std::size_t(hosts), false);
  for (int i = 0; i < chosen; ++i) is_chosen[std::size_t(order[std::size_t(i)])] = true;
  q.judged.clear();
  for (int rank = 0; rank < ranks; ++rank)
    if (is_chosen[std::size_t(q.host_of_rank[std::size_t(rank)])]) q.judged.push_back(rank);
}

/// The time of exchanges like those of a grid.
struct measured_exchange {
  double log_seconds = 0;
  double spread = 0;  ///< standard deviation of ln(true / estimated)
};

/// The grid of all ranks with the fastest exchange; empty if blocks are smaller than the width in
/// every grid. `measured` takes precedence over the model. Elsewhere the model counts, corrected by
/// its error where both have a value. Among equal grids, the grid that cuts the first dimensions
/// most often wins, because sides across these dimensions are contiguous in memory.
inline std::vector<int> best_grid(
    const grid_query& q,
    const std::function<std::optional<measured_exchange>(const process_grid&)>& measured = {}) {
  constexpr double model_spread = 0.35;
  struct candidate {
    std::vector<int> extents;
    double predicted = 0;  // ln(seconds)
    std::optional<measured_exchange> took;
  };
  std::vector<candidate> all;
  std::vector<double> errors;
  std::vector<int> factors(q.global.size());
  detail::each_grid(factors, 0, int(q.host_of_rank.size()), [&](const std::vector<int>& extents) {
    for (std::size_t k = 0; k < extents.size(); ++k)
      if (q.global[k] / extents[k] < std::max<std::int64_t>(1, q.width)) return;
    const process_grid grid{extents, q.periodic};
    candidate c{extents, std::log(exchange_s(q, grid)), std::nullopt};
    if (measured) c.took = measured(grid);
    if (c.took) errors.push_back(c.took->log_seconds - c.predicted);
    all.push_back(std::move(c));
  });
  const double error = errors.empty() ? 0 : median(errors);
  const candidate* best = nullptr;
  double least = 0;
  for (const candidate& c : all) {
    double expected = c.predicted + error;
    if (c.took) {
      const double of_model = 1 / (model_spread * model_spread),
                   of_measured = 1 / (c.took->spread * c.took->spread);
      expected =
          (of_model * expected + of_measured * c.took->log_seconds) / (of_model + of_measured);
    }
    // Sums of the same times in another order differ by rounding.
    if (best && expected > least - 1e-9) continue;
    best = &c;
    least = expected;
  }
  return best ? best->extents : std::vector<int>();
}

}  // namespace railpass
