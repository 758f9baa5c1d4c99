// SPDX-License-Identifier: BSL-1.0
//
// What algorithms in the memory of a node share. A rank writes what it gives once, however many
// read it; readers reduce straight from there. Segments are as long as a cell, and steps of a
// segment follow one another, so that writing a segment and reading the one before overlap.
#pragma once

#include "collectives/algorithm.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace railpass::collectives {

/// Everybody reads what everybody writes: with more ranks the reading takes too long.
inline constexpr preconditions shared_flat_needs{.shared_memory = true, .max_ranks = 8};

inline constexpr std::string_view shared_flat_source =
    "Graham and Shipman 2008, doi:10.1007/978-3-540-87475-1_21";

inline block_range block_of(int rank, int num_ranks) { return {.parts = num_ranks, .first = rank}; }

/// Combines what ranks `first` down to `last` have published at `place` in `to`, in rank order,
/// behind what is there since `sum`.
inline step_id combine_down(builder& b, int first, int last, int place, buffer to,
                            const block_range& blocks, step_id sum) {
  for (int k = first; k >= last; --k)
    sum = b.combine(k, place, to, blocks, {each(sum)}, by_segments);
  return sum;
}

/// Publishes the block of each other rank at the place of its number, the next rank's first.
inline void publish_for_others(builder& b, const shape& s) {
  for (int k = 1; k < s.num_ranks; ++k) {
    const int to = wrap(s.rank + k, s.num_ranks);
    b.publish(buffer::input, block_of(to, s.num_ranks), to, {}, by_segments);
  }
}

/// Adds up in `to`, in rank order, this rank's block of all inputs: those of the others where they
/// published it for this one, and its own. Returns the last step.
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

// --- closed forms: of `bytes` that each rank gives or gets in pieces as long as a cell

inline double pieces_of(double bytes) { return std::max(1.0, std::ceil(bytes / cell_bytes)); }
inline double piece_bytes(double bytes) { return std::min(bytes, double(cell_bytes)); }

/// `from` pieces are published, `to` fetched and `combined` combined, all by each rank, for each
/// segment; the first piece has to be there before anybody goes on.
inline double shared_s(const cost_query& q, double bytes, double given, double fetched,
                       double combined) {
  const machine_model& m = q.machine;
  const double piece = piece_bytes(bytes);
  const double busy_s =
      given * m.publish_s(piece) + fetched * m.fetch_s(piece) + combined * m.combine_s(piece);
  return m.publish_s(piece) * (given > 0 ? 0 : 1) + pieces_of(bytes) * busy_s;
}

}  // namespace railpass::collectives
