// SPDX-License-Identifier: BSL-1.0
//
// Parts shared by several algorithms: the binomial scatter, folding to a power of two, partial
// results without copies, and pieces of closed forms. Trees are in trees.hpp, blocks of ranks in
// blocks.hpp.
#pragma once

#include "collectives/algorithm.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

namespace railpass::collectives {

// --- scatter for scatter_allgather broadcasts ------------------------------------------------

/// The binomial scatter cuts the message into p blocks and gives rank v the blocks [v, v +
/// scattered_blocks(v, p)): its own block and the blocks of the ranks below it in the tree.
constexpr int scattered_blocks(int v, int p) { return v == 0 ? p : std::min(v & -v, p - v); }

/// p = 8: 0 sends blocks 4-7 to 4; then 0 sends 2-3 to 2, and 4 sends 6-7 to 6; then 1, 3, 5 and 7
/// get theirs. Returns the step in which the rank receives (no_step at the root).
inline step_id binomial_scatter(builder& b, const shape& s) {
  const int p = s.num_ranks, v = s.rank;
  const auto part = [&](int rank) {
    return block_range{.parts = p, .first = rank, .count = scattered_blocks(rank, p)};
  };
  const step_id arrived = v == 0 ? no_step : b.receive(buffer::output, part(v), v - (v & -v));
  const auto limit = static_cast<unsigned>(v == 0 ? p : v & -v);
  for (int bit = int(std::bit_ceil(limit)) / 2; bit > 0; bit /= 2)
    if (v + bit < p) b.send(buffer::output, part(v + bit), v + bit, {whole(arrived)});
  return arrived;
}

// --- folding to a power of two ---------------------------------------------------------------

/// The ranks of the doubling rounds: the largest power of two, 2^k <= p, or another number that is
/// more than half of p. In each pair of the first 2 (p - 2^k) ranks, the even rank hands its data
/// to the odd rank, which represents both. The ranks of a pair are neighbours, so the rank order is
/// kept. Alternatively the odd rank hands its data to the even rank, so that rank 0 takes part.
struct folding {
  int power;      ///< ranks that take part
  int folded;     ///< ranks that do not take part
  int stays = 1;  ///< the rank of each pair that takes part: 1: the odd one, 0: the even one

  explicit constexpr folding(int p) : folding(p, int(std::bit_floor(static_cast<unsigned>(p)))) {}
  constexpr folding(int p, int takes_part, int which_stays = 1)
      : power(takes_part), folded(p - takes_part), stays(which_stays) {}
  constexpr bool stands_aside(int rank) const { return rank < 2 * folded && rank % 2 != stays; }
  constexpr bool stands_for_two(int rank) const { return rank < 2 * folded && rank % 2 == stays; }
  constexpr int position(int rank) const { return rank < 2 * folded ? rank / 2 : rank - folded; }
  constexpr int rank_at(int position) const {
    return position < folded ? 2 * position + stays : position + folded;
  }
  constexpr int rounds() const { return int(std::bit_width(static_cast<unsigned>(power))) - 1; }
};

/// The partners in the rounds of a halving: positions that differ in the lowest bit first, which
/// keeps the rank order, or in the highest bit first.
enum class halving_order { near_first, far_first };

/// The bits of the rounds.
inline std::vector<int> halving_bits(int power, halving_order order) {
  std::vector<int> bits;
  for (int bit = 1; bit < power; bit *= 2) bits.push_back(bit);
  if (order == halving_order::far_first) std::reverse(bits.begin(), bits.end());
  return bits;
}

/// A rank's partial result. It starts as the input, which is never written, and moves between the
/// output (or its substitute on a rank without output) and two scratch buffers. A reduce step
/// leaves its result where its right operand was. With the lower ranks' part on the left, the
/// step overwrites either the received or the own part. One of the three buffers is always free, so
/// the next message can arrive before the current one has been reduced.
class partial_result {
 public:
  /// @param ordered whether the lower ranks' part must be the left operand
  partial_result(builder& b, bool ordered, buffer output = buffer::output)
      : b_(b), output_(output), ordered_(ordered) {}

  step_id send(const block_range& blocks, int peer) {
    return use(where_, b_.send(where_, blocks, peer, {whole(ready_)}));
  }
  void receive_and_reduce(const block_range& blocks, int peer, bool peer_is_lower) {
    const buffer before = where_, arrival = free_;
    const step_id received = b_.receive(arrival, blocks, peer, users(arrival));
    users(arrival).clear();
    if (ordered_ && peer_is_lower) {
      if (where_ == buffer::input) {
        where_ = output_;
        ready_ = b_.copy(buffer::input, where_, blocks, {whole(ready_)});
      }
      std::vector<after> waits = users(where_);
      waits.insert(waits.end(), {whole(received), whole(ready_)});
      users(where_).clear();
      ready_ = use(arrival, b_.reduce(arrival, where_, blocks, waits));
    } else {
      ready_ = use(where_, b_.reduce(where_, arrival, blocks, {whole(received), whole(ready_)}));
      where_ = arrival;
    }
    free_ = third(before, arrival);
  }
  /// Exchanges halves with one partner per bit and reduces the kept half. Returns the remaining
  /// block, one of fold.power.
  block_range halve(const folding& fold, int position, const std::vector<int>& bits) {
    block_range mine{.parts = fold.power, .count = fold.power};
    const int rank = fold.rank_at(position);
    for (const int bit : bits) {
      block_range kept = mine, given = mine;
      kept.count = given.count = mine.count / 2;
      ((position & bit) == 0 ? given : kept).first += kept.count;
      const int peer = fold.rank_at(position ^ bit);
      send(given, peer);
      receive_and_reduce(kept, peer, peer < rank);
      mine = kept;
    }
    return mine;
  }
  /// Brings the result's blocks to the output; returns the last step.
  step_id to_output(const block_range& blocks) {
    if (where_ == output_) return ready_;
    std::vector<after> waits = users(output_);
    waits.push_back(whole(ready_));
    return b_.copy(where_, output_, blocks, waits);
  }
  /// Steps that still read the output's memory (which may be the input's).
  const std::vector<after>& readers_of_output() { return users(output_); }

 private:
  // Input and output count as one buffer, because in a call in place they are the same memory.
  static std::size_t index(buffer b) {
    return b == buffer::scratch0 ? 1 : b == buffer::scratch1 ? 2 : 0;
  }
  buffer third(buffer a, buffer b) const {
    return std::array{output_, buffer::scratch0, buffer::scratch1}[3 - index(a) - index(b)];
  }
  std::vector<after>& users(buffer b) { return users_[index(b)]; }
  step_id use(buffer b, step_id s) {
    users(b).push_back(whole(s));
    return s;
  }

  builder& b_;
  buffer output_;
  bool ordered_;
  buffer where_ = buffer::input;
  buffer free_ = buffer::scratch0;
  step_id ready_ = no_step;
  std::array<std::vector<after>, 3> users_;  // per buffer: steps to wait for before writing there
};

// --- closed forms ----------------------------------------------------------------------------

constexpr int ceil_log2(int p) { return int(std::bit_width(static_cast<unsigned>(p - 1))); }

/// Times of one message on a link.
struct hop {
  double one_way_s;   ///< from one idle rank to another
  double exchange_s;  ///< each way between two ranks, at the same time
  double shift_s;     ///< of a rank that sends to one rank and receives from another at once
  double flow_s;      ///< per message sent and received, in a stream on all ranks; 0: unknown
  double crowd_s;     ///< like flow_s, for messages to and from many ranks
  double busy_s;      ///< of the link at either end
  double send_s;      ///< of the sender's processor
  double receive_s;   ///< of the receiver's processor

  hop(const link_model& link, double bytes)
      : one_way_s(link.one_way_s(bytes)),
        exchange_s(link.exchange_s(bytes)),
        shift_s(link.shift_s(bytes)),
        flow_s(link.flow_s(bytes)),
        crowd_s(link.crowd_s(bytes)),
        busy_s(link.busy_s(bytes)),
        send_s(link.sending_s(bytes)),
        receive_s(link.receiving_s(bytes)) {}
  /// The time of a rank for each segment of a long stream, if the rank sends it `out` times,
  /// receives it `in` times and works on it for local_s, as all other ranks do. The link's
  /// directions, the transfer between link and rank, and the CPU work in parallel.
  double stage_s(double out, double in, double local_s = 0) const {
    return std::max({std::max(out, in) * busy_s,
                     (out + in) / 2 * (out > 1 && in > 1 ? crowd_s : flow_s),
                     out * send_s + in * receive_s + local_s});
  }
  /// The same for each message to one rank and from another rank, among many ranks.
  double crowded_stage_s(double local_s = 0) const {
    return std::max({busy_s, crowd_s, send_s + receive_s + local_s});
  }
};

/// A message of `bytes` cut into segments: number and mean size.
struct stream {
  double segments;
  double segment_bytes;

  stream(double bytes, std::int64_t largest_bytes, double unit_bytes)
      : segments(largest_bytes > 0 && bytes > 0
                     ? std::ceil(bytes / std::max(double(largest_bytes), unit_bytes))
                     : 1),
        segment_bytes(bytes / segments) {}
};

/// A message of one size on both classes of links. Ranks are on the nodes in blocks, and rank 0
/// starts the first block: a rank at `distance` is on the same node if that is less than the node's
/// ranks, to good approximation. Ranks of one node share its link to other nodes, but have ports of
/// their own within the node.
struct routes {
  int per_node;
  hop near;
  hop far;

  routes(const cost_query& q, double bytes)
      : per_node(std::clamp(q.ranks_per_node, 1, q.num_ranks)),
        near(per_node > 1 ? q.machine.same_node : q.slowest_link(), bytes),
        far(q.slowest_link(), bytes) {}

  const hop& to(std::int64_t distance) const { return distance < per_node ? near : far; }
  /// Every rank exchanges a message with the rank at `distance`.
  double exchange_s(std::int64_t distance) const {
    return distance < per_node ? near.exchange_s : far.exchange_s + (per_node - 1) * far.busy_s;
  }
  /// Every rank of a ring passes on the message it received, `rounds` times.
  double shifts_s(int rounds) const {
    const int between_nodes = rounds / per_node;
    return between_nodes * far.shift_s + (rounds - between_nodes) * near.shift_s;
  }
  /// A message passes through `hops` ranks, one after the other.
  double way_s(int hops) const {
    const int between_nodes = hops / per_node;
    return between_nodes * far.one_way_s + (hops - between_nodes) * near.one_way_s;
  }
  /// A rank sends `to_near` and `to_far` messages: links and CPU work in parallel.
  double fan_s(double to_near, double to_far) const {
    return std::max(
        {to_near * near.busy_s, to_far * far.busy_s, to_near * near.send_s + to_far * far.send_s});
  }
};

/// Each rank learns from all other ranks: in the first round from the rank before it, then from
/// ranks at twice the distance.
inline double dissemination_s(int num_ranks, const routes& r) {
  double total_s = 0;
  for (int distance = 1; distance < num_ranks; distance *= 2) total_s += r.exchange_s(distance);
  return total_s;
}

/// When the last rank of a k-nomial tree gets a message that the root has at time 0. The last rank
/// is the one whose path has the largest sum of hops and waits for earlier children. In base
/// `radix`, each digit other than 0 of a rank is a hop, and the digit counts the siblings served
/// before; zeros before it are larger subtrees served before. The last rank is p - 1, or a rank
/// that has one digit of p - 1 reduced by one or set to 0, and the largest possible digits after
/// it.
inline double knomial_depth_s(int p, std::int64_t radix, const routes& r) {
  struct way {
    double total_s = 0, near_waits_s = 0, far_waits_s = 0;
  };
  // Adds one digit, after `before` siblings; siblings on the same node have smaller digits.
  const auto go_on = [&](way w, std::int64_t stride, std::int64_t digit, std::int64_t before) {
    const std::int64_t near = stride < r.per_node ? std::min(before, (r.per_node - 1) / stride) : 0;
    w.near_waits_s += double(near) * r.near.busy_s;
    w.far_waits_s += double(before - near) * r.far.busy_s;
    if (digit == 0) return w;
    return digit * stride < r.per_node
               ? way{.total_s = w.total_s + w.near_waits_s + r.near.one_way_s}
               : way{.total_s = w.total_s + w.far_waits_s + r.far.one_way_s};
  };
  // tail_s[k]: the path through the k last digits with the largest possible digits.
  std::array<double, 32> tail_s{};
  std::int64_t stride = 1;
  std::size_t digits = 0;
  for (; stride < p; stride *= radix, ++digits)
    tail_s[digits + 1] = tail_s[digits] + go_on({}, stride, radix - 1, radix - 2).total_s;
  const auto end_s = [&](const way& w, std::size_t left) {
    if (left == 0) return w.total_s;
    const bool first_is_near = (radix - 1) * (stride / radix) < r.per_node;
    return w.total_s + (first_is_near ? w.near_waits_s : w.far_waits_s) + tail_s[left];
  };
  way last;
  double latest_s = 0;
  std::int64_t rest = p - 1;
  for (std::size_t left = digits; left-- > 0;) {
    stride /= radix;
    const std::int64_t digit = rest / stride;
    const std::int64_t most = left + 1 == digits ? digit : radix - 1;
    rest -= digit * stride;
    if (digit > 0) latest_s = std::max(latest_s, end_s(go_on(last, stride, 0, most), left));
    if (digit > 1)
      latest_s = std::max(latest_s, end_s(go_on(last, stride, digit - 1, digit - 2), left));
    last = digit > 0 ? go_on(last, stride, digit, digit - 1) : go_on(last, stride, 0, most);
  }
  return std::max(latest_s, last.total_s);
}

/// The time of a k-nomial tree's root for each segment of a long stream.
inline double knomial_root_s(int p, std::int64_t radix, const routes& r) {
  double to_near = 0, to_far = 0;
  for (std::int64_t stride = 1; stride < p; stride *= radix) {
    const std::int64_t children = std::min(radix - 1, (p - 1) / stride);
    const std::int64_t near = std::min(children, (r.per_node - 1) / stride);
    to_near += double(near);
    to_far += double(children - near);
  }
  return r.fan_s(to_near, to_far);
}

/// The depth of a complete binary tree (children 2v+1, 2v+2).
inline double binary_depth_s(int p, const routes& r) {
  double latest_s = 0;
  if (r.per_node > 1) {
    // Level by level: of the messages that share a node's link on a level, half come before a given
    // message.
    for (int senders = 1; 2 * senders <= p; senders *= 2) {
      const int receivers = std::min(2 * senders, p - (2 * senders - 1));
      const int at_once = std::min(receivers, 2 * std::min(senders, r.per_node));
      const bool in_node = 4 * senders - 2 < r.per_node;
      latest_s += in_node ? r.near.one_way_s + r.near.busy_s
                          : r.far.one_way_s + (at_once - 1) / 2.0 * r.far.busy_s;
    }
    return latest_s;
  }
  // Rank v is on level floor(log2(v+1)). The bits of v+1 after the leading one are the second
  // children on the path.
  const auto arrival_s = [&](unsigned v_plus_1) {
    return (std::bit_width(v_plus_1) - 1) * r.far.one_way_s +
           (std::popcount(v_plus_1) - 1) * r.far.busy_s;
  };
  const auto last = static_cast<unsigned>(p);
  latest_s = arrival_s(last);
  for (unsigned bit = 1; bit <= last; bit *= 2)
    if (const unsigned other = last / bit * bit - 1; (last & bit) != 0 && other > 0)
      latest_s = std::max(latest_s, arrival_s(other));
  return latest_s;
}

/// The time of the busiest rank, or of the busiest node's link, for each segment of a long stream
/// down a complete binary tree.
inline double binary_stage_s(int p, const routes& r) {
  const int n = r.per_node;
  const double rank_s = std::max(r.far.stage_s(std::min(2, p - 1), 0),
                                 p > 3 ? r.far.stage_s(std::min(2, p - 3), 1) : 0);
  if (n == 1) return rank_s;
  // Messages that leave the first node, and the second node.
  const int first = std::min(p - 1, 2 * n) - (n - 1), second = std::min(p - 1, 4 * n) - 2 * n;
  return p <= n ? rank_s
                : std::max({r.near.stage_s(2, 1), first * r.far.busy_s, second * r.far.busy_s});
}

/// When the last rank has its block of a binomial scatter of q.bytes.
inline double binomial_scatter_s(const cost_query& q) {
  const int p = q.num_ranks;
  const double block = q.bytes / p;
  const int largest = int(std::bit_floor(static_cast<unsigned>(p)));
  // If p is not a power of two, the root first serves the ranks beyond the largest power of two.
  double total_s = largest < p ? q.slowest_link().busy_s((p - largest) * block) : 0;
  // Down to the last rank or past it: a receiver continues when the message has arrived, a sender
  // when the link is free.
  for (int blocks = largest / 2; blocks > 0; blocks /= 2) {
    const hop h = routes(q, blocks * block).to(blocks);
    total_s += blocks > 1 ? std::max(h.one_way_s, h.busy_s) : h.one_way_s;
  }
  return total_s;
}

}  // namespace railpass::collectives
