// SPDX-License-Identifier: BSL-1.0
//
// Trees whose subtrees are contiguous ranges of ranks, each beginning with its root: sums of such
// subtrees are in rank order.
#pragma once

#include "collectives/parts.hpp"

#include <vector>

namespace railpass::collectives {

/// A rank's place in a tree.
struct tree_place {
  int parent = -1;            ///< none: the root
  std::vector<int> children;  ///< ascending
};

/// The rest of a rank's range is cut in fan_out nearly equal parts, whose first ranks are its
/// children. fan_out 1 is a chain; with p-1 and more the tree is flat.
/// p = 8, fan_out 2: 0 has 1 and 5; 1 has 2 and 4; 2 has 3; 5 has 6 and 7.
inline tree_place range_tree(int rank, int num_ranks, int fan_out) {
  tree_place place;
  int first = 0, end = num_ranks;
  const auto num_children = [&] { return std::min(fan_out, end - first - 1); };
  const auto child_begin = [&](int k) {  // the first rank of part k
    return first + 1 + int(block_begin(end - first - 1, num_children(), k));
  };
  while (first != rank) {
    int k = 0;
    while (child_begin(k + 1) <= rank) ++k;
    const int child = child_begin(k), child_end = child_begin(k + 1);
    place.parent = first;
    first = child;
    end = child_end;
  }
  for (int k = 0; k < num_children(); ++k) place.children.push_back(child_begin(k));
  return place;
}

/// The parent of v is v without its lowest bit. p = 8: 0 has 1, 2 and 4; 2 has 3; 4 has 5 and 6; 6
/// has 7.
inline tree_place binomial_tree(int rank, int num_ranks) {
  tree_place place;
  const int lowest = rank == 0 ? num_ranks : rank & -rank;
  if (rank != 0) place.parent = rank - lowest;
  for (int bit = 1; bit < lowest && rank + bit < num_ranks; bit *= 2)
    place.children.push_back(rank + bit);
  return place;
}

/// Where a partial sum is, and the step after which it is there (none: it is the input).
struct partial_sum {
  buffer at = buffer::input;
  step_id ready = no_step;
};

/// Adds up the subtree, segment by segment. The children's sums come in rank order; each is the
/// right operand and takes up the sum so far, which so alternates between scratch0 and scratch1. No
/// copy of the input is made.
inline partial_sum sum_of_subtree(builder& b, const std::vector<int>& children) {
  partial_sum sum;
  buffer arrival = buffer::scratch0;
  for (std::size_t k = 0; k < children.size(); ++k) {
    const step_id part = b.receive(arrival, {}, children[k],
                                   k < 2 ? wait_list{} : wait_list{each(sum.ready)}, by_segments);
    sum.ready = b.reduce(sum.at, arrival, {}, {each(part), each(sum.ready)}, by_segments);
    sum.at = arrival;
    arrival = arrival == buffer::scratch0 ? buffer::scratch1 : buffer::scratch0;
  }
  return sum;
}

/// Sums up a tree into rank 0's output.
inline schedule build_tree_reduce(const shape& s, const tree_place& place,
                                  std::int64_t segment_bytes) {
  builder b(s, segment_bytes);
  const partial_sum sum = sum_of_subtree(b, place.children);
  if (place.parent < 0)
    b.copy(sum.at, buffer::output, {}, {each(sum.ready)}, by_segments);
  else
    b.send(sum.at, {}, place.parent, {each(sum.ready)}, by_segments);
  return b.finish();
}

}  // namespace railpass::collectives
