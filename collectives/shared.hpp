// SPDX-License-Identifier: BSL-1.0
//
// What algorithms in the memory of a node share. A rank writes what it gives once, however many
// read it; readers reduce straight from there. Segments are as long as a cell, and steps of a
// segment follow one another, so that writing a segment and reading the one before overlap.
#pragma once

#include "collectives/algorithm.hpp"

#include <algorithm>
#include <cmath>

namespace railpass::collectives {

/// Everybody reads what everybody writes: with more ranks the reading takes too long.
inline constexpr preconditions shared_flat_needs{.shared_memory = true, .max_ranks = 8};

/// Combines what ranks `first` down to `last` have published at `place` in `to`, in rank order,
/// behind what is there since `sum`.
inline step_id combine_down(builder& b, int first, int last, int place, buffer to,
                            const block_range& blocks, step_id sum) {
  for (int k = first; k >= last; --k)
    sum = b.combine(k, place, to, blocks, {each(sum)}, by_segments);
  return sum;
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
