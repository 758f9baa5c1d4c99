// SPDX-License-Identifier: BSL-1.0
//
// Parts shared by algorithms whose messages are blocks of ranks: all_gather, all_to_all, gather,
// ...
#pragma once

#include "collectives/parts.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace railpass::collectives {

/// Ranks as a mesh in row-major order, as square as possible, with at least as many columns as
/// rows. A prime number of ranks is one row.
struct mesh {
  int columns;
  int rows;

  explicit constexpr mesh(int p) : columns(p), rows(1) {
    for (int r = 2; std::int64_t{r} * r <= p; ++r)
      if (p % r == 0) {
        rows = r;
        columns = p / r;
      }
  }
  constexpr int row(int rank) const { return rank / columns; }
  constexpr int column(int rank) const { return rank % columns; }
};

/// The extents of a mesh with at most `dimensions` dimensions of two ranks or more. The extents are
/// as equal as possible, and the largest is the last.
inline std::vector<int> mesh_extents(int p, int dimensions) {
  std::vector<int> extents;
  for (; dimensions > 1; --dimensions) {
    int extent = 1;
    for (int n = 2; std::pow(n, dimensions) <= p; ++n)
      if (p % n == 0) extent = n;
    if (extent > 1) extents.push_back(extent);
    p /= extent;
  }
  if (p > 1 || extents.empty()) extents.push_back(p);
  return extents;
}

inline block_range block_of(int rank, int num_ranks) { return {.parts = num_ranks, .first = rank}; }

/// The blocks of `count` ranks from `first` on, wrapping around the end: one or two ranges.
inline std::vector<block_range> around(int first, int count, int p) {
  const int begin = wrap(first, p), before_end = std::min(count, p - begin);
  std::vector<block_range> ranges{{.parts = p, .first = begin, .count = before_end}};
  if (count > before_end) ranges.push_back({.parts = p, .count = count - before_end});
  return ranges;
}

/// Messages that leave a node if each of its ranks sends one to the rank at `distance`. Messages
/// wrap around the end, unlike those between partners of a hypercube.
inline double leaving(const cost_query& q, std::int64_t distance) {
  return q.num_ranks <= q.ranks_per_node
             ? 0
             : double(std::min<std::int64_t>(distance, q.ranks_per_node));
}

/// Every rank sends and receives `messages` messages of one size, all at once; `leaving` messages
/// of each node go to other nodes.
inline double burst_s(const routes& r, double messages, double leaving) {
  if (messages <= 0) return 0;
  if (leaving <= 0) return r.near.exchange_s + (messages - 1) * r.near.stage_s(1, 1);
  return r.far.exchange_s +
         std::max((leaving - 1) * r.far.busy_s, (messages - 1) * (r.far.send_s + r.far.receive_s));
}

/// A burst to the ranks at `distance`, 2 `distance` and so on, up to `messages` `distance`.
inline double strided_burst_s(const cost_query& q, const routes& r, std::int64_t distance,
                              double messages) {
  double all_leaving = 0;
  for (int k = 1; k <= messages; ++k) all_leaving += leaving(q, k * distance);
  return burst_s(r, messages, all_leaving);
}

/// All ranks hear of all other ranks, in rounds of up to radix - 1 messages.
inline double n_way_dissemination_s(const cost_query& q, const routes& r, std::int64_t radix) {
  double total_s = 0;
  for (std::int64_t distance = 1; distance < q.num_ranks; distance *= radix)
    total_s += strided_burst_s(
        q, r, distance, double(std::min<std::int64_t>(radix - 1, (q.num_ranks - 1) / distance)));
  return total_s;
}

/// The radix of the n-way dissemination by which all ranks learn a few words of all ranks, from
/// simulated rounds of short messages: on 16 to 256 ranks of six machines 3 messages at once take
/// 0.55 to 0.8 times as long as one, and 7 messages 0.87 to 1.36 times as long as 3.
inline constexpr int agreement_radix = 4;

/// All ranks learn two numbers of all ranks.
inline double asking_s(const cost_query& q) {
  return n_way_dissemination_s(q, routes(q, 2 * sizeof(std::int64_t)), agreement_radix);
}

/// An algorithm for equal blocks that serves `op`, whose lengths only pairs of ranks know: in each
/// call the ranks first learn how long the longest block is, by dissemination, and make all blocks
/// as long. Source: Fan et al.: Optimizing the Bruck algorithm for non-uniform all-to-all
/// communication, HPDC 2022, doi:10.1145/3502181.3531468.
template <const algorithm& Equal>
constexpr algorithm padded(collective op) {
  algorithm a = serving(op, Equal);
  a.needs.longest_block = true;
  a.cost_s = [](const cost_query& q, const parameters& values) {
    return asking_s(q) + 2 * q.num_ranks * q.machine.copy.time_s(q.bytes / q.num_ranks) +
           Equal.cost_s(q, values);
  };
  return a;
}

/// A burst to all other ranks of the rank's row of a mesh, whose ranks are `stride` apart.
inline double row_burst_s(const cost_query& q, const routes& r, int columns, int stride = 1) {
  const bool across = q.num_ranks > q.ranks_per_node && columns * stride > r.per_node;
  const int near = std::clamp(r.per_node / stride, 1, columns);
  return burst_s(r, columns - 1, across ? r.per_node * double(columns - near) : 0);
}

}  // namespace railpass::collectives
