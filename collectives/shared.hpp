// SPDX-License-Identifier: BSL-1.0
//
// Parts shared by algorithms in the memory of a node. A rank writes its data once for any number of
// readers, and readers reduce directly from there. Segments are as long as a cell, and the steps of
// a segment follow each other, so that writing a segment overlaps with reading the segment before.
#pragma once

#include "collectives/blocks.hpp"
#include "collectives/trees.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::collectives {

/// Every rank reads the data of every rank, which takes too long with more ranks.
inline constexpr preconditions shared_flat_needs{.shared_memory = true, .max_ranks = 8};

/// Each rank has a place: a ring has 16 cells.
inline constexpr preconditions shared_blocks_needs{.shared_memory = true, .max_ranks = 16};
/// One place is enough for any number of readers.
inline constexpr preconditions shared_reads_needs{.shared_memory = true, .max_ranks = 64};
/// For more ranks than flat algorithms: parents read from their children, and the reverse. Nodes
/// rarely have more ranks.
inline constexpr preconditions shared_tree_needs{
    .shared_memory = true, .min_ranks = shared_flat_needs.max_ranks + 1, .max_ranks = 256};
/// The same where caches are known.
inline constexpr preconditions shared_caches_needs = [] {
  preconditions needs = shared_tree_needs;
  needs.several_caches = true;
  return needs;
}();
inline constexpr parameter shared_fan_out_parameter{"fan_out", {4, 2, 8, 16}};

inline constexpr std::string_view shared_source =
    "Graham and Shipman 2008, doi:10.1007/978-3-540-87475-1_21";

inline constexpr std::string_view shared_caches_source =
    "Katevenis et al. 2023, doi:10.1145/3605573.3605616";

/// A rank's position in a tree in the node's memory.
inline tree_position shared_tree_of(const shape& s, const parameters& values) {
  return range_tree(s.rank, s.num_ranks, int(values[0]));
}
/// A rank's position in a tree that follows caches.
inline tree_position shared_caches_of(const shape& s, const parameters& values) {
  if (s.nodes.empty()) return shared_tree_of(s, values);
  return grouped_range_tree(s.rank, s.nodes, int(values[0]));
}

/// Combines the data that ranks `first` down to `last` have published at `place` into `to`, in rank
/// order, after `sum`.
inline step_id combine_down(builder& b, int first, int last, int place, buffer to,
                            const block_range& blocks, step_id sum) {
  for (int k = first; k >= last; --k)
    sum = b.combine(k, place, to, blocks, {each(sum)}, by_segments);
  return sum;
}

/// Publishes the block of each other rank at the place of that rank's number, the next rank's
/// first. Returns the steps by rank.
inline std::vector<step_id> publish_for_others(builder& b, const shape& s) {
  std::vector<step_id> given(std::size_t(s.num_ranks), no_step);
  for (int k = 1; k < s.num_ranks; ++k) {
    const int to = wrap(s.rank + k, s.num_ranks);
    given[std::size_t(to)] =
        b.publish(buffer::input, block_of(to, s.num_ranks), to, {}, by_segments);
  }
  return given;
}

/// Sums this rank's block of all inputs in `to`, in rank order: the blocks that other ranks
/// published for this rank, and its own block. Returns the last step.
inline step_id combine_own_block(builder& b, const shape& s, buffer to) {
  const int last = s.num_ranks - 1, r = s.rank;
  const block_range own = block_of(r, s.num_ranks);
  if (r == last) {
    const step_id mine = b.copy(buffer::input, to, own, {}, by_segments);
    return combine_down(b, last - 1, 0, r, to, own, mine);
  }
  step_id sum = b.fetch(last, r, to, own, {}, by_segments);
  sum = combine_down(b, last - 1, r + 1, r, to, own, sum);
  sum = b.reduce(buffer::input, to, own, {each(sum)}, by_segments);
  return combine_down(b, r - 1, 0, r, to, own, sum);
}

/// Each rank sums its block of all inputs.
/// @param reads_all whether the rank then reads all blocks into output
/// @param shows_own whether the rank publishes its sum, at the place of its number
inline schedule sum_of_blocks(const shape& s, bool reads_all, bool shows_own) {
  const int p = s.num_ranks, r = s.rank;
  builder b(s, cell_bytes, p);
  const std::vector<step_id> given = publish_for_others(b, s);
  // In place, the rank's own block of the input would be overwritten while it is still needed.
  const buffer sum_at = buffer::scratch0;
  const step_id sum = combine_own_block(b, s, sum_at);
  if (shows_own) b.publish(sum_at, block_of(r, p), r, {each(sum)}, by_segments);
  if (!reads_all) return b.finish();
  b.copy(sum_at, buffer::output, block_of(r, p), {each(sum)}, by_segments);
  for (int k = 1; k < p; ++k) {
    const int from = wrap(r + k, p);
    b.fetch(from, from, buffer::output, block_of(from, p), {each(given[std::size_t(from)])},
            by_segments);
  }
  return b.finish();
}

/// Sums a rank's subtree in scratch0, in rank order: the children's data at `place`, and the rank's
/// own input. If order does not matter, children under other caches come last, because they take
/// longest. Returns the last step.
inline step_id sum_of_subtree(builder& b, const shape& s, const tree_position& tree, int place) {
  const std::vector<int>& all = tree.children;
  std::size_t first = all.size();
  if (s.commutative && !s.nodes.empty()) {
    const int cache_end = s.nodes[s.nodes.group_of(s.rank) + 1];
    first = std::size_t(std::ranges::lower_bound(all, cache_end) - all.begin());
    if (first == 0) first = all.size();
  }
  step_id sum = b.fetch(all[first - 1], place, buffer::scratch0, {}, {}, by_segments);
  const auto combine = [&](int child) {
    sum = b.combine(child, place, buffer::scratch0, {}, {each(sum)}, by_segments);
  };
  for (std::size_t k = first - 1; k-- > 0;) combine(all[k]);
  sum = b.reduce(buffer::input, buffer::scratch0, {}, {each(sum)}, by_segments);
  for (std::size_t k = first; k < all.size(); ++k) combine(all[k]);
  return sum;
}

/// Passes a message on in output, from the parent to the children, after `given`.
inline void fetch_and_pass_on(builder& b, const tree_position& tree, int place, step_id given) {
  const step_id got = b.fetch(tree.parent, place, buffer::output, {}, {each(given)}, by_segments);
  if (!tree.children.empty()) b.publish(buffer::output, {}, place, {each(got)}, by_segments);
}

// --- closed forms: of `bytes` that each rank gives or gets in pieces as long as a cell

inline double pieces_of(double bytes) { return std::max(1.0, std::ceil(bytes / cell_bytes)); }
inline double piece_bytes(double bytes) { return std::min(bytes, double(cell_bytes)); }

/// Per segment each rank publishes `given` pieces, fetches `fetched` and combines `combined`. The
/// first piece must be there before any rank continues.
inline double shared_s(const cost_query& q, double bytes, double given, double fetched,
                       double combined) {
  const machine_model& m = q.machine;
  const double piece = piece_bytes(bytes);
  const double busy_s =
      given * m.publish_s(piece) + fetched * m.fetch_s(piece) + combined * m.combine_s(piece);
  return m.publish_s(piece) * (given > 0 ? 0 : 1) + m.line_s() + pieces_of(bytes) * busy_s;
}

/// The time of sum_of_blocks, for any readers.
inline double sum_of_blocks_s(const cost_query& q, const parameters&) {
  const double p = q.num_ranks;
  return shared_s(q, q.bytes / p, p, p, p - 1);
}

/// Times of a tree: of the first piece, and of the busiest rank for each further piece.
class shared_tree_times {
 public:
  double up_first_s = 0, up_s = 0, down_first_s = 0, down_s = 0;

  shared_tree_times(const cost_query& q, const parameters& values, double bytes)
      : shared_tree_times(q, double(values[0]), piece_bytes(bytes)) {
    go_down(q.num_ranks, reach::node, 1);
  }
  /// For a tree that follows caches.
  static shared_tree_times by_caches(const cost_query& q, const parameters& values, double bytes) {
    shared_tree_times t(q, double(values[0]), piece_bytes(bytes));
    const double under_each = q.ranks_per_cache > 0 ? q.ranks_per_cache : q.num_ranks;
    t.go_down(std::ceil(q.num_ranks / under_each), reach::node, under_each);
    const double across_s = std::exchange(t.up_s, 0);
    t.go_down(under_each, reach::cache, 1);
    t.up_s += across_s;  // a cache's first rank sums both
    return t;
  }

 private:
  shared_tree_times(const cost_query& q, double fan_out, double piece)
      : machine_(q.machine), fan_out_(fan_out), piece_(piece) {
    down_first_s = machine_.publish_s(piece);
  }
  // Adds the levels of a tree of `num_ranks` ranks. Each rank represents `below` ranks, including
  // itself, which have been summed before, and to which it passes the result on.
  void go_down(double num_ranks, reach r, double below) {
    const machine_model& m = machine_;
    const double fetch_s = m.fetch_s(piece_, r), combine_s = m.combine_s(piece_, r);
    const auto passes_on_s = [&](bool passes) { return passes ? m.publish_s(piece_) : 0; };
    if (num_ranks > 1)
      down_s = std::max(down_s, fetch_s + passes_on_s(below > 1 || fan_out_ < num_ranks - 1));
    // The largest subtree of each level.
    for (double ranks = num_ranks; ranks > 1;) {
      const double children = std::min(fan_out_, ranks - 1);
      const double own_s = below > 1 ? combine_s : fetch_s + m.reduce.time_s(piece_);
      const double summing_s =
          own_s + (children - 1) * combine_s + passes_on_s(below == 1 || ranks < num_ranks);
      up_s = std::max(up_s, summing_s);
      up_first_s += m.line_s(r) + summing_s;
      ranks = std::ceil((ranks - 1) / children);
      down_first_s += m.line_s(r) + fetch_s + passes_on_s(below > 1 || ranks > 1);
    }
  }

  const machine_model& machine_;
  double fan_out_, piece_;
};

}  // namespace railpass::collectives
