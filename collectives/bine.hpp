// SPDX-License-Identifier: BSL-1.0
//
// Bine (binomial negabinary) trees and butterflies: binomial in the number of rounds, but a message
// goes a third of the ranks far where a binomial one goes half of them. Fewer messages so leave a
// group of neighbours, such as the ranks of a node or of a switch.
// Source: De Sensi et al.: Bine trees: enhancing collective operations by optimizing communication
// locality, SC 2025, doi:10.1145/3712285.3759835. There p is a power of two; here p is any number.
#pragma once

#include "collectives/blocks.hpp"
#include "collectives/trees.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::collectives {

inline constexpr std::string_view bine_source = "De Sensi et al. 2025, doi:10.1145/3712285.3759835";

// --- trees -----------------------------------------------------------------------------------

/// A rank's position in a Bine tree, and the blocks of the ranks of subtrees. Every subtree is a
/// range of ranks, but does not begin with its root.
struct bine_position {
  tree_position tree;              ///< smaller subtrees come first among the children
  block_range own;                 ///< this rank's subtree
  std::vector<block_range> below;  ///< the children's subtrees
};

/// Ranks stand on a line on which rank 0 is a third of the way from the beginning. A range is cut
/// in halves; the holder of the message sends it to the holder's mirror image in the other half,
/// and both go on with their halves. The holder keeps the larger half. p = 8: 0 has 1, 7 and 3; 7
/// has 6; 3 has 2 and 4; 4 has 5.
inline bine_position bine_tree(int rank, int num_ranks) {
  const int root = num_ranks / 3;  // where rank 0 stands
  const int here = wrap(rank + root, num_ranks);
  const auto rank_at = [&](int spot) { return wrap(spot - root, num_ranks); };
  bine_position position{.tree = {}, .own = {.parts = num_ranks, .count = num_ranks}, .below = {}};
  int first = 0, end = num_ranks, holder = root;
  while (end - first > 1) {
    const bool holder_is_low = 2 * (holder - first) < end - first;
    const int middle = first + (end - first + (holder_is_low ? 1 : 0)) / 2;
    const int child = std::clamp(2 * middle - 1 - holder, first, end - 1);
    const int begin = holder_is_low ? middle : first, stop = holder_is_low ? end : middle;
    const block_range part{.parts = num_ranks, .first = rank_at(begin), .count = stop - begin};
    const bool is_below = begin <= here && here < stop;
    if (is_below == holder_is_low)
      first = middle;
    else
      end = middle;
    if (is_below) {
      position.tree.parent = rank_at(holder);
      position.own = part;
      holder = child;
    } else if (here == holder) {
      position.tree.children.insert(position.tree.children.begin(), rank_at(child));
      position.below.insert(position.below.begin(), part);
    }
  }
  return position;
}

/// When the last rank of a Bine tree is done: join(n, child_s, kept_s) is the time of a range of n
/// ranks, if that of the child's half is child_s and that of the holder's half kept_s.
template <class Join>
double bine_halves_s(int p, const Join& join) {
  // Halves of all ranges of a level have `few` ranks or one more.
  int few = 0;
  double few_s = 0, more_s = 0;
  for (int level = int(std::bit_width(unsigned(p))); level-- > 0; few = p >> level) {
    const auto half_s = [&](int n) { return n == few ? few_s : more_s; };
    const auto range_s = [&](int n) {
      return n == 1 ? 0 : join(n, half_s(n / 2), half_s(n - n / 2));
    };
    const double now_few_s = range_s(p >> level);
    more_s = range_s((p >> level) + 1);
    few_s = now_few_s;
  }
  return few_s;
}

/// When the last rank of a Bine tree has got its message; or, with the time of a reduction, when
/// the root has the sum of all.
inline double bine_depth_s(int p, const routes& r, double reduce_s) {
  return bine_halves_s(p, [&](int n, double child_s, double kept_s) {
    const hop& h = r.to(n);
    return reduce_s == 0 ? std::max(h.one_way_s + child_s, h.busy_s + kept_s)
                         : std::max(h.one_way_s + child_s, kept_s + h.stage_s(0, 1)) + reduce_s;
  });
}

/// When the last rank has its block of a scatter of q.bytes.
inline double bine_scatter_s(const cost_query& q) {
  return bine_halves_s(q.num_ranks, [&](int n, double child_s, double kept_s) {
    const int half = n / 2;
    const hop h = routes(q, half * (q.bytes / q.num_ranks)).to(n - 1);
    return std::max(h.one_way_s + child_s, h.busy_s + kept_s);
  });
}

// --- butterflies -----------------------------------------------------------------------------

/// Two ranks give each other blocks. Blocks that a rank holds are those of consecutive positions.
struct bine_exchange {
  int distance;  ///< in the last round perhaps negative: backwards
  int peer;
  int gives, takes;  ///< first positions of the blocks
  int count;         ///< positions of either
  int keeps, kept;   ///< first and number of the positions of blocks that are held and not given
};

/// The butterfly in which blocks gather: a rank at an even position exchanges with the positions
/// above, below, above, ...; one at an odd position the other way round. Every round doubles what a
/// rank holds; the last one brings what is missing. An odd number of ranks has a position less: the
/// last rank stands aside, and the rank before represents both.
class bine_butterfly {
 public:
  explicit bine_butterfly(int num_ranks) : ranks_(num_ranks), positions_(num_ranks / 2 * 2) {}

  bool stands_aside(int rank) const { return rank == positions_; }
  bool stands_for_two(int rank) const { return positions_ < ranks_ && rank == positions_ - 1; }

  std::vector<bine_exchange> rounds(int position) const {
    std::vector<bine_exchange> all;
    int below = 0, above = 0;
    bool up = position % 2 == 0;
    for (int held = 1; held < positions_; held *= 2, up = !up) {
      const int count = std::min(held, positions_ - held);
      const int first = position - below, end = position + above + 1;
      const int distance = count + (up ? above - below : below - above);
      all.push_back({.distance = distance,
                     .peer = wrap(up ? position + distance : position - distance, positions_),
                     .gives = up ? first : end - count,
                     .takes = up ? end : first - count,
                     .count = count,
                     .keeps = up ? first + count : first,
                     .kept = held - count});
      (up ? above : below) += held;
    }
    return all;
  }

  /// The blocks of the ranks at `count` positions from `first` on: one or two ranges.
  std::vector<block_range> blocks(int first, int count) const {
    const int begin = wrap(first, positions_);
    const bool has_last = begin + count >= positions_;
    return around(begin, count + (has_last ? ranks_ - positions_ : 0), ranks_);
  }

 private:
  int ranks_;
  int positions_;
};

/// Gathers all blocks in the output. Own blocks are there after `held`; the output may be written
/// after `free`.
inline void bine_all_gather(builder& b, const shape& s, std::vector<after> held,
                            const std::vector<after>& free) {
  const bine_butterfly butterfly(s.num_ranks);
  for (const bine_exchange& x : butterfly.rounds(s.rank)) {
    for (const block_range& blocks : butterfly.blocks(x.gives, x.count))
      b.send(buffer::output, blocks, x.peer, held);
    for (const block_range& blocks : butterfly.blocks(x.takes, x.count))
      held.push_back(whole(b.receive(buffer::output, blocks, x.peer, free)));
  }
  if (butterfly.stands_for_two(s.rank)) b.send(buffer::output, {}, s.rank + 1, held);
}

/// Sums up this position's blocks in scratch0, by the rounds of the butterfly in reverse.
struct bine_sum {
  std::vector<after> ready;       ///< the sum
  std::vector<after> input_read;  ///< sends that read the input
};
inline bine_sum bine_reduce_scatter(builder& b, const shape& s) {
  const bine_butterfly butterfly(s.num_ranks);
  bine_sum sum;
  bool is_input = true;  // what is summed up so far
  if (butterfly.stands_for_two(s.rank)) {
    const step_id arrived = b.receive(buffer::scratch0, {}, s.rank + 1);
    sum.ready = {whole(b.reduce(buffer::input, buffer::scratch0, {}, {whole(arrived)}))};
    is_input = false;
  }
  std::vector<after> part_read;  // scratch1
  std::vector<bine_exchange> rounds = butterfly.rounds(s.rank);
  std::reverse(rounds.begin(), rounds.end());
  for (const bine_exchange& x : rounds) {
    const buffer from = is_input ? buffer::input : buffer::scratch0;
    const buffer arrival = is_input ? buffer::scratch0 : buffer::scratch1;
    for (const block_range& blocks : butterfly.blocks(x.takes, x.count)) {
      const after sent = whole(b.send(from, blocks, x.peer, sum.ready));
      if (is_input) sum.input_read.push_back(sent);
    }
    std::vector<after> summed = sum.ready, now_read;
    for (const block_range& blocks : butterfly.blocks(x.gives, x.count)) {
      std::vector<after> waits = sum.ready;
      waits.push_back(whole(b.receive(arrival, blocks, x.peer, part_read)));
      now_read.push_back(
          whole(b.reduce(is_input ? buffer::input : arrival, buffer::scratch0, blocks, waits)));
      summed.push_back(now_read.back());
    }
    if (is_input && x.kept > 0)
      for (const block_range& blocks : butterfly.blocks(x.keeps, x.kept))
        summed.push_back(whole(b.copy(buffer::input, buffer::scratch0, blocks)));
    if (!is_input) part_read = std::move(now_read);
    sum.ready = std::move(summed);
    is_input = false;
  }
  return sum;
}

/// The rounds of a butterfly on blocks of q.bytes in all, with `reduced` reductions of what
/// arrives.
inline double bine_rounds_s(const cost_query& q, double reduced) {
  const double block = q.bytes / q.num_ranks;
  double total_s = 0;
  for (const bine_exchange& x : bine_butterfly(q.num_ranks).rounds(0)) {
    const double bytes = x.count * block;
    const routes r(q, bytes);
    // Partners are on two nodes in some rounds of some ranks only, if they are near each other.
    const double leaving_ranks = leaving(q, std::abs(x.distance));
    const double share = leaving_ranks / r.per_node;
    total_s += (1 - share) * r.near.exchange_s + share * r.far.exchange_s +
               std::max(0.0, leaving_ranks - 1) * r.far.busy_s +
               reduced * q.machine.reduce.time_s(bytes);
  }
  return total_s;
}

/// If a rank stands aside: its message to or from the rank that represents it.
inline double bine_aside_s(const cost_query& q, double bytes, double reduced = 0) {
  if (q.num_ranks % 2 == 0) return 0;
  const routes r(q, bytes);
  const hop& h = (q.num_ranks - 1) % r.per_node == 0 ? r.far : r.near;
  return h.one_way_s + reduced * q.machine.reduce.time_s(bytes);
}

}  // namespace railpass::collectives
