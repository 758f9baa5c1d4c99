// SPDX-License-Identifier: BSL-1.0
//
// What several algorithms are made of: trees, the binomial scatter, folding to a power of two, a
// partial result that avoids copies, and the pieces of closed forms.
#pragma once

#include "collectives/algorithm.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

namespace railpass::collectives {

// --- scatter for scatter_allgather broadcasts ------------------------------------------------

/// The binomial scatter cuts the message in p blocks and leaves rank v with blocks
/// [v, v + scattered_blocks(v, p)): its own and those of the ranks below it in the tree.
constexpr int scattered_blocks(int v, int p) { return v == 0 ? p : std::min(v & -v, p - v); }

/// p = 8: 0 sends blocks 4-7 to 4, then 0 2-3 to 2 and 4 6-7 to 6, then 1, 3, 5, 7 get theirs.
/// Returns the step in which the rank receives (none at the root).
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

/// The largest power of two of ranks, 2^k <= p, takes part in the doubling rounds. Of the first
/// 2 (p - 2^k) ranks each even one hands its data to the odd one above it, which stands for both;
/// neighbours, so that rank order is kept.
struct folding {
  int power;   ///< ranks that take part
  int folded;  ///< ranks that do not

  explicit constexpr folding(int p)
      : power(int(std::bit_floor(static_cast<unsigned>(p)))), folded(p - power) {}
  constexpr bool stands_aside(int rank) const { return rank < 2 * folded && rank % 2 == 0; }
  constexpr bool stands_for_two(int rank) const { return rank < 2 * folded && rank % 2 == 1; }
  constexpr int place(int rank) const { return rank < 2 * folded ? rank / 2 : rank - folded; }
  constexpr int rank_at(int place) const { return place < folded ? 2 * place + 1 : place + folded; }
  constexpr int rounds() const { return std::bit_width(static_cast<unsigned>(power)) - 1; }
};

/// A rank's partial result. It starts as the input, which is never written, and moves between the
/// output and two scratch buffers: a reduce step leaves its result where its right operand was, so
/// with the lower ranks' part on the left it is sometimes the received and sometimes the own part
/// that is overwritten. Of the three places one is always free for the next message before the
/// current one has been reduced.
class partial_result {
 public:
  /// ordered: the lower ranks' part must be the left operand.
  partial_result(builder& b, bool ordered) : b_(b), ordered_(ordered) {}

  step_id send(const block_range& blocks, int peer) {
    return use(where_, b_.send(where_, blocks, peer, {whole(ready_)}));
  }
  void receive_and_reduce(const block_range& blocks, int peer, bool peer_is_lower) {
    const buffer before = where_, arrival = free_;
    const step_id received = b_.receive(arrival, blocks, peer, users(arrival));
    users(arrival).clear();
    if (ordered_ && peer_is_lower) {
      if (where_ == buffer::input) {
        where_ = buffer::output;
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
  /// Brings the result's blocks to the output; returns the step after which they are there.
  step_id to_output(const block_range& blocks) {
    if (where_ == buffer::output) return ready_;
    std::vector<after> waits = users(buffer::output);
    waits.push_back(whole(ready_));
    return b_.copy(where_, buffer::output, blocks, waits);
  }
  /// Steps that still read the output's memory (which may be the input's).
  const std::vector<after>& readers_of_output() { return users(buffer::output); }

 private:
  // Input and output count as one place: in an in-place call they are the same memory.
  static std::size_t place(buffer b) {
    return b == buffer::input || b == buffer::output ? 0 : b == buffer::scratch0 ? 1 : 2;
  }
  static buffer third(buffer a, buffer b) {
    static constexpr std::array all{buffer::output, buffer::scratch0, buffer::scratch1};
    return all[3 - place(a) - place(b)];
  }
  std::vector<after>& users(buffer b) { return users_[place(b)]; }
  step_id use(buffer b, step_id s) {
    users(b).push_back(whole(s));
    return s;
  }

  builder& b_;
  bool ordered_;
  buffer where_ = buffer::input;
  buffer free_ = buffer::scratch0;
  step_id ready_ = no_step;
  std::array<std::vector<after>, 3> users_;  // per place: steps to wait for before writing there
};

// --- closed forms ----------------------------------------------------------------------------

constexpr int ceil_log2(int p) { return std::bit_width(static_cast<unsigned>(p - 1)); }

/// A message of `bytes` cut in segments of `segment` bytes.
struct stream {
  double bytes;
  double segment;
  double segments;

  stream(double message_bytes, std::int64_t segment_bytes, double unit_bytes)
      : bytes(message_bytes),
        segment(segment_bytes > 0 ? std::min(std::max(double(segment_bytes), unit_bytes), bytes)
                                  : bytes),
        segments(segment > 0 ? std::ceil(bytes / segment) : 1) {}
  /// How long one direction of a link is busy with all segments.
  double busy_s(const link_model& link) const {
    return segments * link.busy_s(segments > 1 ? bytes / segments : segment);
  }
};

}  // namespace railpass::collectives
