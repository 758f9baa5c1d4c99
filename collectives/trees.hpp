// SPDX-License-Identifier: BSL-1.0
//
// Trees, and what is done on them. Unless a tree says otherwise, subtrees are contiguous ranges of
// ranks, each beginning with its root: sums of such subtrees are in rank order.
#pragma once

#include "collectives/parts.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace railpass::collectives {

/// A rank's position in a tree.
struct tree_position {
  int parent = -1;            ///< none: the root
  std::vector<int> children;  ///< ascending
};

/// A tree and the part of the message that goes along it.
struct tree_of_part {
  tree_position position;
  block_range blocks{};
  bool last_is_largest = false;  ///< of the children's subtrees: on the way down it goes first
  int window = max_window;       ///< of a rank's messages to its parent
};

/// The rest of a rank's range is cut in fan_out nearly equal parts, whose first ranks are its
/// children. fan_out 1 is a chain; with p-1 and more the tree is flat.
/// p = 8, fan_out 2: 0 has 1 and 5; 1 has 2 and 4; 2 has 3; 5 has 6 and 7.
inline tree_position range_tree(int rank, int num_ranks, int fan_out) {
  tree_position position;
  int first = 0, end = num_ranks;
  const auto num_children = [&] { return std::min(fan_out, end - first - 1); };
  const auto child_begin = [&](int k) {  // the first rank of part k
    return first + 1 + int(block_begin(end - first - 1, num_children(), k));
  };
  while (first != rank) {
    int k = 0;
    while (child_begin(k + 1) <= rank) ++k;
    const int child = child_begin(k), child_end = child_begin(k + 1);
    position.parent = first;
    first = child;
    end = child_end;
  }
  for (int k = 0; k < num_children(); ++k) position.children.push_back(child_begin(k));
  return position;
}

/// A range tree within each group of ranks, and one of the groups' first ranks. `begins`: the first
/// rank of each group, and the number of ranks.
/// Groups of 3 ranks, fan_out 2: 0 has 1, 2, 3 and 6; 3 has 4 and 5; 6 has 7 and 8.
inline tree_position grouped_range_tree(int rank, const group_begins& begins, int fan_out) {
  const int group = begins.group_of(rank), first = begins[group];
  tree_position position = range_tree(rank - first, begins.ranks_in(group), fan_out);
  for (int& child : position.children) child += first;
  if (rank != first) {
    position.parent += first;
    return position;
  }
  const tree_position among_firsts = range_tree(group, begins.num_groups(), fan_out);
  if (group > 0) position.parent = begins[among_firsts.parent];
  for (const int child : among_firsts.children) position.children.push_back(begins[child]);
  return position;
}

/// The end of the range that is a rank's subtree; `tree_of(rank)` is a rank's position.
template <class TreeOf>
int range_end(int rank, const TreeOf& tree_of) {
  const std::vector<int> children = tree_of(rank).children;
  return children.empty() ? rank + 1 : range_end(children.back(), tree_of);
}

/// The parent of v is v without its lowest bit. p = 8: 0 has 1, 2 and 4; 2 has 3; 4 has 5 and 6; 6
/// has 7.
inline tree_position binomial_tree(int rank, int num_ranks) {
  tree_position position;
  const int lowest = rank == 0 ? num_ranks : rank & -rank;
  if (rank != 0) position.parent = rank - lowest;
  for (int bit = 1; bit < lowest && rank + bit < num_ranks; bit *= 2)
    position.children.push_back(rank + bit);
  return position;
}

/// The same in base `radix`: the parent of v is v with its last digit other than 0 made 0.
inline tree_position knomial_tree(int rank, int num_ranks, std::int64_t radix) {
  tree_position tree;
  const std::int64_t p = num_ranks, v = rank;
  std::int64_t stride = 1;
  for (; v == 0 ? stride < p : v / stride % radix == 0; stride *= radix)
    for (std::int64_t child = v + stride; child < std::min(p, v + radix * stride); child += stride)
      tree.children.push_back(int(child));
  if (v != 0) tree.parent = int(v - v / stride % radix * stride);
  return tree;
}

/// The root with `fan_out` chains of nearly equal length.
inline tree_position chains_tree(int rank, int num_ranks, int fan_out) {
  tree_position position;
  const int others = num_ranks - 1, chains = std::min(fan_out, others);
  for (int c = 0; c < chains; ++c) {
    const int head = 1 + int(block_begin(others, chains, c));
    const int end = 1 + int(block_begin(others, chains, c + 1));
    if (rank == 0) position.children.push_back(head);
    if (rank < head || rank >= end) continue;
    position.parent = rank == head ? 0 : rank - 1;
    if (rank + 1 < end) position.children.push_back(rank + 1);
  }
  return position;
}

/// Generalized Fibonacci numbers: how many ranks a broadcast reaches in t turns if a rank sends a
/// message every turn and a message takes `latency` turns. Up to the first that is `num_ranks` or
/// more.
inline std::vector<std::int64_t> ranks_reached(int num_ranks, std::int64_t latency) {
  std::vector<std::int64_t> reached{1};
  while (reached.back() < num_ranks) {
    const auto t = std::int64_t(reached.size());
    reached.push_back(reached.back() + (t < latency ? 0 : reached[std::size_t(t - latency)]));
  }
  return reached;
}

/// The tree that reaches them in the fewest turns: a range that has t turns left keeps what can be
/// reached in t-1, and the first of the rest is served now. latency 1 is a binomial tree.
/// p = 8, latency 2: 0 has 1, 2, 3 and 5; 3 has 4; 5 has 6 and 7.
inline tree_position postal_tree(int rank, int num_ranks, std::int64_t latency) {
  tree_position position;
  const std::vector<std::int64_t> reached = ranks_reached(num_ranks, latency);
  int first = 0, end = num_ranks;
  auto turns = std::int64_t(reached.size()) - 1;
  while (end - first > 1) {
    const auto kept = int(reached[std::size_t(--turns)]);
    if (end - first <= kept) continue;
    const int child = first + kept;
    if (rank >= child) {
      position.parent = first;
      first = child;
      turns -= latency - 1;
    } else {
      if (rank == first) position.children.insert(position.children.begin(), child);
      end = child;
    }
  }
  return position;
}

/// Two binary trees below rank 0, for a half of the message each: every rank but at most one is
/// inside one of them and a leaf of the other. The positions of the first tree are numbered from
/// left to right, so that odd ones are leaves; the second one is its mirror image or, if the number
/// of positions is odd, the first one moved on by a position. Subtrees are not ranges that begin
/// with their root. p = 8: 0 has 4; 4 has 2 and 6; 2 has 1 and 3; 6 has 5 and 7. And: 0 has 3; 3
/// has 1 and 5; 1 has 7 and 2; 5 has 4 and 6.
inline std::vector<tree_of_part> double_binary_trees(int rank, int num_ranks) {
  const int p = num_ranks;
  const auto tree = [&](int position, auto rank_at) {
    tree_position t;
    if (position == 0) {
      t.children.push_back(rank_at(int(std::bit_floor(static_cast<unsigned>(p - 1)))));
      return t;
    }
    const int bit = position & -position;
    const int up = (position - bit) | 2 * bit;
    t.parent = rank_at(up < p ? up : position - bit);
    if (bit == 1) return t;
    t.children.push_back(rank_at(position - bit / 2));
    int lower = bit / 2;  // the right subtree may have fewer levels
    while (lower > 0 && position + lower >= p) lower /= 2;
    if (lower > 0) t.children.push_back(rank_at(position + lower));
    return t;
  };
  const auto same = [](int position) { return position; };
  const auto mirrored = [p](int position) { return position == 0 ? 0 : p - position; };
  const auto moved = [p](int position) {
    return position == 0 ? 0 : position == 1 ? p - 1 : position - 1;
  };
  const block_range first{.parts = 2}, second{.parts = 2, .first = 1};
  // A leaf's segments are ready at once, and would fill the link before those of the other tree: a
  // reduction of 1 MiB in segments of 8 KiB on 8 ranks takes 47 ms in the simulator (200 Mbit/s),
  // with a window of 64 messages 65.
  constexpr int window = 2;
  const int moved_position = rank == 0 ? 0 : rank == p - 1 ? 1 : rank + 1;
  return {{tree(rank, same), first, false, window},
          {p % 2 == 1 ? tree(mirrored(rank), mirrored) : tree(moved_position, moved), second, false,
           window}};
}

inline void send_to_children(builder& b, buffer from, const tree_of_part& tree, step_id arrived) {
  std::vector<int> children = tree.position.children;
  if (tree.last_is_largest) std::reverse(children.begin(), children.end());
  for (const int child : children) b.send(from, tree.blocks, child, {each(arrived)}, by_segments);
}

/// Rank 0's output goes down.
inline schedule build_tree_broadcast(const shape& s, const std::vector<tree_of_part>& trees,
                                     std::int64_t segment_bytes) {
  builder b(s, segment_bytes);
  for (const tree_of_part& tree : trees) {
    const tree_position& position = tree.position;
    const block_range& blocks = tree.blocks;
    const step_id arrived =
        position.parent < 0 ? no_step
                            : b.receive(buffer::output, blocks, position.parent, {}, by_segments);
    send_to_children(b, buffer::output, tree, arrived);
  }
  return b.finish();
}
/// Where a partial sum is, and the step after which it is there (none: it is the input).
struct partial_sum {
  buffer at = buffer::input;
  step_id ready = no_step;
};

/// Adds up the subtree, segment by segment. The children's sums come in rank order; each is the
/// right operand and takes up the sum so far, which so alternates between scratch0 and scratch1. No
/// copy of the input is made.
inline partial_sum sum_of_subtree(builder& b, const std::vector<int>& children,
                                  const block_range& blocks) {
  partial_sum sum;
  buffer arrival = buffer::scratch0;
  for (std::size_t k = 0; k < children.size(); ++k) {
    const step_id part = b.receive(arrival, blocks, children[k],
                                   k < 2 ? wait_list{} : wait_list{each(sum.ready)}, by_segments);
    sum.ready = b.reduce(sum.at, arrival, blocks, {each(part), each(sum.ready)}, by_segments);
    sum.at = arrival;
    arrival = arrival == buffer::scratch0 ? buffer::scratch1 : buffer::scratch0;
  }
  return sum;
}

/// Sums up trees into rank 0's output.
inline schedule build_tree_reduce(const shape& s, const std::vector<tree_of_part>& trees,
                                  std::int64_t segment_bytes) {
  builder b(s, segment_bytes);
  for (const tree_of_part& tree : trees) {
    const tree_position& position = tree.position;
    const block_range& blocks = tree.blocks;
    const partial_sum sum = sum_of_subtree(b, position.children, blocks);
    if (position.parent < 0)
      b.copy(sum.at, buffer::output, blocks, {each(sum.ready)}, by_segments);
    else
      b.send(sum.at, blocks, position.parent, {each(sum.ready)},
             {.segmented = true, .window = tree.window});
  }
  return b.finish();
}

/// Sums go up and the result comes down the same tree; both directions work at once.
inline schedule build_tree_all_reduce(const shape& s, const std::vector<tree_of_part>& trees,
                                      std::int64_t segment_bytes) {
  builder b(s, segment_bytes);
  for (const tree_of_part& tree : trees) {
    const tree_position& position = tree.position;
    const block_range& blocks = tree.blocks;
    const partial_sum sum = sum_of_subtree(b, position.children, blocks);
    buffer result_at = buffer::output;
    step_id result = sum.ready;
    if (position.parent < 0) {
      result_at = sum.at;
      b.copy(sum.at, buffer::output, blocks, {each(sum.ready)}, by_segments);
    } else {
      // The result may overwrite the input, in an in-place call, once that has been used. It cannot
      // come before all parts have been received, so it waits for them and leaves the window to
      // them.
      const step_id handed = b.send(sum.at, blocks, position.parent, {each(sum.ready)},
                                    {.segmented = true, .window = tree.window});
      result = b.receive(buffer::output, blocks, position.parent,
                         {each(sum.ready == no_step ? handed : sum.ready)}, by_segments);
    }
    send_to_children(b, result_at, tree, result);
  }
  return b.finish();
}

// --- closed forms ----------------------------------------------------------------------------

/// When the root has the sum of a k-nomial tree, before it brings that to the output.
inline double knomial_reduce_depth_s(int p, std::int64_t radix, const routes& r, double reduce_s) {
  double total_s = 0;
  for (std::int64_t stride = 1; stride < p; stride *= radix) {
    // As many children come at once, and their messages one after the other.
    const std::int64_t children = std::min(radix - 1, (p - 1) / stride);
    const hop& h = r.to(stride * children);
    total_s += h.one_way_s + double(children - 1) * h.stage_s(0, 1, reduce_s) + reduce_s;
  }
  return total_s;
}

/// How long its root takes for each segment of a long stream.
inline double knomial_reduce_root_s(int p, std::int64_t radix, const routes& r, double reduce_s) {
  double children = 0;
  for (std::int64_t stride = 1; stride < p; stride *= radix)
    children += double(std::min(radix - 1, (p - 1) / stride));
  return std::max(knomial_root_s(p, radix, r), children * (r.far.receive_s + reduce_s));
}

/// The first segments' way up a range tree, until the root has the sum of all, and down it again.
class range_tree_ways {
 public:
  struct way {
    double up_s = 0, down_s = 0;
  };

  /// fan_out: more than most_children count as that many. waits: a message waits for its receiver.
  range_tree_ways(int fan_out, const routes& r, double reduce_s, bool waits)
      : fan_out_(std::min(fan_out, int(most_children))),
        routes_(r),
        reduce_s_(reduce_s),
        waits_(waits) {}

  way of(int num_ranks) {
    if (num_ranks == 1) return {};
    for (int i = 0; i < num_known_; ++i)
      if (known_[std::size_t(i)].num_ranks == num_ranks) return known_[std::size_t(i)].all;
    const int below = num_ranks - 1;
    const auto children = std::size_t(std::min(fan_out_, below));
    struct message {
      double arrives_s;
      std::size_t child;
    };
    std::array<message, most_children> messages;
    way all;
    double busy_s = 0;  // the root's link, with messages to the children before
    for (std::size_t k = 0; k < children; ++k) {
      const auto part_begin = [&](std::size_t i) {
        return int(block_begin(below, std::int64_t(children), std::int64_t(i)));
      };
      const way part = of(part_begin(k + 1) - part_begin(k));
      const hop& h = routes_.to(1 + part_begin(k));
      messages[k] = {part.up_s + h.one_way_s, k};
      all.down_s = std::max(all.down_s, busy_s + h.one_way_s + part.down_s);
      busy_s += h.busy_s;
    }
    // sum_of_subtree() has room for two messages, and then one when a sum is moved on.
    const hop& h = routes_.to(below);
    std::array<double, most_children> arrived_s;
    double last_s = 0;
    std::sort(messages.begin(), messages.begin() + std::ptrdiff_t(children),
              [](const message& x, const message& y) { return x.arrives_s < y.arrives_s; });
    for (std::size_t i = 0; i < children; ++i) {
      const auto& [earliest_s, k] = messages[i];
      const bool by_turns = k < 2 || !waits_;
      arrived_s[k] = by_turns ? std::max(earliest_s, last_s + h.stage_s(0, 1)) : earliest_s;
      if (by_turns) last_s = arrived_s[k];
    }
    for (std::size_t k = 0; k < children; ++k) {
      const double ready_s = all.up_s + (k < 2 || !waits_ ? h.receive_s : h.one_way_s);
      all.up_s = std::max(arrived_s[k], k == 0 ? 0 : ready_s) + reduce_s_;
    }
    known_[std::size_t(num_known_++)] = {num_ranks, all};
    return all;
  }

  static constexpr std::size_t most_children = 8;

 private:
  struct known_way {
    int num_ranks;
    way all;
  };

  int fan_out_;
  const routes& routes_;
  double reduce_s_;
  bool waits_;
  // The parts of a level have two sizes at most, and there are 30 levels at most.
  std::array<known_way, 64> known_;
  int num_known_ = 0;
};

/// When the last rank of a postal tree has got its message; or, with the time of a reduction, when
/// the root has the sum of all.
inline double postal_depth_s(int p, std::int64_t latency, const routes& r, double reduce_s) {
  const std::vector<std::int64_t> reached = ranks_reached(p, latency);
  const auto at = [](const auto& list, std::int64_t t) {
    return list[std::size_t(std::max<std::int64_t>(0, t))];
  };
  // The child is served first, and has its subtree then; what is kept is served after it.
  const auto join = [&](const hop& h, double child_s, double kept_s) {
    return reduce_s == 0 ? std::max(h.one_way_s + child_s, h.busy_s + kept_s)
                         : std::max(h.one_way_s + child_s, kept_s + h.stage_s(0, 1)) + reduce_s;
  };
  // full_s[t]: of a whole tree of t turns.
  std::vector<double> full_s{0};
  for (std::int64_t t = 1; t < std::int64_t(reached.size()); ++t)
    full_s.push_back(
        t < latency ? 0
                    : join(r.to(at(reached, t - 1)), at(full_s, t - latency), at(full_s, t - 1)));
  const auto part_s = [&](auto again, std::int64_t ranks, std::int64_t turns) -> double {
    while (turns > 0 && ranks <= at(reached, turns - 1)) --turns;
    if (ranks == at(reached, turns)) return at(full_s, turns);
    const std::int64_t kept = at(reached, turns - 1);
    return join(r.to(kept), again(again, ranks - kept, turns - latency), at(full_s, turns - 1));
  };
  return part_s(part_s, p, std::int64_t(reached.size()) - 1);
}

/// How long its root takes for each segment of a long stream.
inline double postal_root_s(int p, std::int64_t latency, const routes& r, double reduce_s) {
  double to_near = 0, to_far = 0;
  for (const int child : postal_tree(0, p, latency).children)
    (child < r.per_node ? to_near : to_far) += 1;
  return std::max(r.fan_s(to_near, to_far), (to_near + to_far) * reduce_s);
}

/// When the last rank below a root has the first segments of both halves that go down two binary
/// trees, or the root has their sums.
inline double double_binary_depth_s(int p, const routes& r, double reduce_s) {
  double total_s = r.far.busy_s + r.far.one_way_s + reduce_s;
  for (int bit = int(std::bit_floor(static_cast<unsigned>(p - 1))) / 2; bit > 0; bit /= 2) {
    const hop& h = r.to(bit);
    const int children = p - 1 > 2 * bit ? 2 : 1;
    total_s += h.one_way_s + (children - 1) * h.busy_s + children * reduce_s;
  }
  return total_s;
}

/// How long the busiest rank takes for each pair of segments, if it reduces for local_s.
inline double double_binary_stage_s(int p, const routes& r, double local_s) {
  return std::max(r.far.stage_s(2, 0, local_s), p > 2 ? r.far.stage_s(2, 2, local_s) : 0);
}

}  // namespace railpass::collectives
