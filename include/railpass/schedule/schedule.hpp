// SPDX-License-Identifier: BSL-1.0
//
// The one description of a collective algorithm: a small graph of steps that performs nothing.
// The executor runs it, the simulator times it, the checker proves it, the trace draws it.
#pragma once

#include "railpass/schedule/nodes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace railpass {

/// The memory a step may name. Every buffer is a message long, in the units of the message, though
/// a rank may have memory for a part of it only (an all_gather's input is the rank's own block):
/// steps must not name the rest, which the checker proves. `input` is read only; in an in-place
/// call it is the same memory as `output`.
enum class buffer : std::uint8_t { input, output, scratch0, scratch1, scratch2, scratch3 };
inline constexpr int max_buffers = 6;

enum class step_kind : std::uint8_t {
  send,
  receive,
  reduce,
  copy,
  publish,
  fetch,
  combine,
  offer,
  get,
  invite,
  put
};

/// Steps with a peer that must post its end of a message.
constexpr bool is_message(step_kind k) { return k == step_kind::send || k == step_kind::receive; }
/// Steps on the rank's own memory alone.
constexpr bool is_local(step_kind k) { return k == step_kind::reduce || k == step_kind::copy; }
/// Steps on memory that the ranks of a node share.
constexpr bool is_shared(step_kind k) { return k >= step_kind::publish; }
/// Of these, the ones that open this rank's own memory to a peer until the end of the call.
constexpr bool opens_memory(step_kind k) { return k == step_kind::offer || k == step_kind::invite; }
/// The ones that copy from or to the memory that a peer has opened.
constexpr bool is_single_copy(step_kind k) { return k == step_kind::get || k == step_kind::put; }
/// The ones that show something at a place; all others look at what a peer shows there.
constexpr bool shows(step_kind k) { return k == step_kind::publish || opens_memory(k); }
constexpr bool looks(step_kind k) { return is_shared(k) && !shows(k); }
/// Whether a step reads this rank's own memory, or lets it be read.
constexpr bool reads_memory(step_kind k) {
  return k != step_kind::receive && k != step_kind::fetch && k != step_kind::get &&
         k != step_kind::invite;
}
/// Whether it writes there, or lets it be written.
constexpr bool writes_memory(step_kind k) {
  return k != step_kind::send && k != step_kind::publish && k != step_kind::offer &&
         k != step_kind::put;
}

/// The most bytes that an instance of a publish may have: what a cell holds.
inline constexpr std::int64_t cell_bytes = 8 * 1024;

/// A contiguous part of the message: `count` adjacent blocks of the `parts` nearly equal ones into
/// which the message is cut, starting with block (first + round * stride) mod parts. The range
/// never wraps around the end. The first (units mod parts) blocks are one unit longer. Where ranks
/// have blocks of their own (gather, all_to_allv, ...), num_ranks parts are those blocks, whatever
/// their lengths.
struct block_range {
  std::int32_t parts = 1;
  std::int32_t first = 0;
  std::int32_t stride = 0;
  std::int32_t count = 1;
  friend bool operator==(const block_range&, const block_range&) = default;
};

/// Units [begin, end) of the message.
struct extent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  constexpr std::int64_t size() const { return end - begin; }
  friend bool operator==(const extent&, const extent&) = default;
};

/// A step that sends to one peer has at most one message of this size or more in flight. MPI
/// libraries deliver the end of such a message only after a hand-shake with the receiver, and over
/// TCP behind all that was sent meanwhile: of 64 messages of 64 KiB in flight the first ended with
/// the last, and a pipeline forwarded nothing until then (Open MPI 4.1, 8 hosts x 200 Mbit, 4 MiB
/// in segments of 64 KiB: 591 ms, one at a time 199).
inline constexpr std::int64_t large_message_bytes = 64 * 1024;

/// Messages of one step that may be under way.
inline constexpr std::int32_t max_window = 64;

/// One step of a schedule, possibly a loop: it stands for rounds x segments instances, which run
/// in the order instance = round * segments + segment. Whatever the number of segments, a step has
/// this one size.
///
/// send     sends `blocks` of `from` to `peer`
/// receive  receives `blocks` of `to` from `peer`
/// reduce   to = from op to on `blocks` ("right = left op right", as MPI_Reduce_local writes it)
/// copy     to = from on `blocks`
/// publish  shows `blocks` of `from`, as they are now, to all ranks of the node
/// fetch    `blocks` of `to` = what `peer` has published at `place`
/// combine  `blocks` of `to` = what `peer` has published at `place` op `blocks` of `to`
/// offer    lets `peer` read `blocks` of `from` where they are, until the end of the call
/// get      `blocks` of `to` = what `peer` offers at `place`
/// invite   lets `peer` write `blocks` of `to` where they are, until the end of the call
/// put      what `peer` invites at `place` = `blocks` of `from`
///
/// From publish on they are for ranks that share memory (see lib/exec/cells.hpp). What is published
/// stays until all ranks are done with it, and so the publisher waits for nobody, unless it is far
/// ahead. What is offered or invited is one copy instead of two, from one process' memory to
/// another's; who offers or invites ends when the peer has. A rank shows something at each of the
/// schedule's `places` once at most per segment; what is published there any rank may look at,
/// itself included, as often as it likes. These steps have one round and as many segments on all
/// ranks; a schedule that has any has no messages, and its steps can run one after the other,
/// segment by segment. Where only the ranks of a node share memory, phases of such steps and phases
/// of messages follow one another (schedule::phases).
///
/// The range of `from` that a reduce or copy reads may be another one than `blocks` of `to`: as
/// many of as many blocks, beginning with block (from_first + round * from_stride) mod parts.
///
/// Steps whose next instance may start take turns, one instance each, in the order of the steps: so
/// the segments a rank sends to its children interleave instead of serving one child after another.
/// Whoever runs a schedule may bound the messages in flight, but not below one per step: a step
/// without a message in flight may always start its next one.
///
/// Peers are virtual ranks, (rank - root) mod num_ranks; the peer of a round is
/// (peer + round * peer_stride) mod num_ranks. An instance whose extent is empty does nothing, on
/// both sides alike.
struct step {
  step_kind kind = step_kind::send;
  buffer from = buffer::output;
  buffer to = buffer::output;
  bool segmented = false;  ///< cut each round's extent in segments of the schedule's segment size
  std::int32_t peer = 0;
  std::int32_t peer_stride = 0;
  std::int32_t rounds = 1;
  /// The step has at most this many messages under way, from the first that has not ended on.
  std::int32_t window = max_window;
  block_range blocks{};
  std::int32_t from_first = 0;  ///< reduce and copy
  std::int32_t from_stride = 0;
  std::int32_t place = 0;             ///< publish and all behind it
  std::int32_t first_dependency = 0;  ///< index into schedule::dependencies
  std::int32_t num_dependencies = 0;
  std::int32_t first_successor = 0;  ///< index into schedule::successors
  std::int32_t num_successors = 0;
  friend bool operator==(const step&, const step&) = default;
};

/// Whether `x`, a step of rank `rank` that looks at another one, finds there what `y` shows.
constexpr bool finds(const step& x, std::int32_t rank, const step& y) {
  if (x.place != y.place) return false;
  if (x.kind == step_kind::get) return y.kind == step_kind::offer && y.peer == rank;
  if (x.kind == step_kind::put) return y.kind == step_kind::invite && y.peer == rank;
  return y.kind == step_kind::publish;
}

/// What an instance of a step waits for.
struct dependency {
  /// `all`: for the end of the other step. Otherwise instance (round, segment) waits for instance
  /// (round - lag, segment) of the other step; there is nothing to wait for if round < lag. A step
  /// that depends so must have as many segments per round as the other one; beyond the other's last
  /// round, the wait is for its end.
  static constexpr std::int32_t all = -1;
  /// Wait until all instances of the other step, a send or receive, have been posted (not done).
  /// The builder adds it where two sends (receives) of a rank have a peer in common: messages of an
  /// ordered pair of ranks are thus posted in the order of the steps, at both ends.
  static constexpr std::int32_t posted = -2;
  /// As lag 0 if the messages of the other step, a send, are large_message_bytes or more; else
  /// nothing. The builder adds it between neighbouring sends: large messages to several peers that
  /// share a link all arrive when the last one does, one after the other they arrive early.
  static constexpr std::int32_t in_turn = -3;
  std::int32_t step = 0;
  std::int32_t lag = 0;
  friend bool operator==(const dependency&, const dependency&) = default;
};

/// The part of a buffer that a rank uses: blocks [first, last) of `parts`.
struct buffer_use {
  std::int32_t parts = 1;
  std::int32_t first = 0;
  std::int32_t last = 0;
  friend bool operator==(const buffer_use&, const buffer_use&) = default;
  /// The smallest part that has both; all of the buffer where they cut it differently.
  constexpr void include(const buffer_use& more) {
    if (last == 0)
      *this = more;
    else if (more.last != 0 && parts != more.parts)
      *this = {1, 0, 1};
    else if (more.last != 0)
      *this = {parts, std::min(first, more.first), std::max(last, more.last)};
  }
};

/// What one rank does. Independent of the message's size, the root and the buffers: those are
/// bound when it runs, so one schedule serves all sizes and roots.
struct schedule {
  /// By which executors know a schedule again that they have prepared something for; 0: they do
  /// not. The library gives the numbers (schedule_cache.hpp): a program that counted, too, would
  /// give the same ones to other schedules.
  std::uint64_t serial = 0;
  std::int32_t rank = 0;  ///< virtual
  std::int32_t num_ranks = 1;
  std::int64_t segment_bytes = 0;  ///< 0: segmented steps have one segment per round
  /// Where ranks show something, per segment; the same number on all of them. 0: they share no
  /// memory.
  std::int32_t places = 0;
  std::array<buffer_use, max_buffers> used{};  ///< by buffer
  std::vector<step> steps;  ///< in an order in which they can run one after the other
  std::vector<dependency> dependencies;
  std::vector<std::int32_t> successors;  ///< steps to look at again when a step moves on
  /// What this rank does instead of steps of its own, one behind the other: the next one begins
  /// when the rank is through with the one before. Phases have no phases themselves. All ranks have
  /// as many of them, each of which is of messages for all or in shared memory for all (places > 0,
  /// as many on all ranks of a node); there, ranks look at those of their own node only.
  std::vector<schedule> phases;

  std::span<const dependency> dependencies_of(const step& s) const {
    return {dependencies.data() + s.first_dependency, std::size_t(s.num_dependencies)};
  }
  std::span<const std::int32_t> successors_of(const step& s) const {
    return {successors.data() + s.first_successor, std::size_t(s.num_successors)};
  }
  const buffer_use& use_of(buffer b) const { return used[std::size_t(b)]; }
  std::size_t memory_bytes() const {
    std::size_t sum = sizeof(*this) + steps.capacity() * sizeof(step) +
                      dependencies.capacity() * sizeof(dependency) +
                      successors.capacity() * sizeof(std::int32_t);
    for (const schedule& phase : phases) sum += phase.memory_bytes();
    return sum;
  }
};

/// The phases of a schedule: itself, if it has no others.
inline std::span<const schedule> phases_of(const schedule& s) {
  return s.phases.empty() ? std::span(&s, 1) : std::span<const schedule>(s.phases);
}

/// First unit of block k when `units` are cut in `parts` blocks.
constexpr std::int64_t block_begin(std::int64_t units, std::int64_t parts, std::int64_t k) {
  return k * (units / parts) + std::min(k, units % parts);
}

/// a mod n in [0, n), also for negative a.
constexpr std::int32_t wrap(std::int64_t a, std::int32_t n) {
  const std::int64_t r = a % n;
  return static_cast<std::int32_t>(r < 0 ? r + n : r);
}

/// The physical rank of a virtual one. `ranks`: their order, where nodes give it (see nodes.hpp);
/// empty: virtual ranks are counted from the root on.
constexpr std::int32_t physical_rank(std::int32_t virtual_rank, std::int32_t root,
                                     std::int32_t num_ranks, const rank_order& ranks = {}) {
  return ranks.empty() ? wrap(std::int64_t{virtual_rank} + root, num_ranks) : ranks[virtual_rank];
}

/// The size of the message a schedule is run with.
struct message_size {
  std::int64_t units = 0;       ///< elements of a reduction, bytes otherwise
  std::int64_t unit_bytes = 1;  ///< packed bytes of one unit
  /// Where the blocks of (virtual) ranks are not equal: block k is units [blocks[k].begin, .end),
  /// one behind the other; equal on all ranks. Empty: num_ranks equal parts. Borrowed.
  std::span<const extent> blocks{};
  constexpr std::int64_t bytes() const { return units * unit_bytes; }
  /// Units per segment, at least 1; `units` if the schedule is not segmented.
  constexpr std::int64_t segment_units(std::int64_t segment_bytes) const {
    return segment_bytes > 0 ? std::max<std::int64_t>(1, segment_bytes / unit_bytes)
                             : std::max<std::int64_t>(1, units);
  }
};

constexpr std::int32_t peer_of(const step& s, std::int32_t round, std::int32_t num_ranks) {
  return wrap(s.peer + std::int64_t{round} * s.peer_stride, num_ranks);
}

/// Units of `count` blocks from `first` on.
constexpr extent blocks_extent(std::int32_t first, std::int32_t count, std::int32_t parts,
                               const message_size& size) {
  if (std::size_t(parts) == size.blocks.size())
    return {size.blocks[std::size_t(first)].begin, size.blocks[std::size_t(first + count - 1)].end};
  return {block_begin(size.units, parts, first), block_begin(size.units, parts, first + count)};
}

/// The units of one round of a step, before segmentation.
constexpr extent round_extent(const block_range& b, std::int32_t round, const message_size& size) {
  return blocks_extent(wrap(b.first + std::int64_t{round} * b.stride, b.parts), b.count, b.parts,
                       size);
}

/// The first unit that a round of a reduce or copy reads.
constexpr std::int64_t round_source(const step& s, std::int32_t round, const message_size& size) {
  return blocks_extent(wrap(s.from_first + std::int64_t{round} * s.from_stride, s.blocks.parts),
                       s.blocks.count, s.blocks.parts, size)
      .begin;
}

/// Units that no range of `count` of `parts` blocks exceeds.
constexpr std::int64_t longest_range(std::int32_t count, std::int32_t parts,
                                     const message_size& size) {
  if (std::size_t(parts) != size.blocks.size()) return block_begin(size.units, parts, count);
  std::int64_t longest = 0;
  for (const extent& e : size.blocks) longest = std::max(longest, e.size());
  return longest > size.units / count ? size.units : count * longest;
}

/// Segments per round: the same in every round and at both ends of a message, however long the
/// particular blocks are; a segment beyond the end is empty.
constexpr std::int64_t segments_per_round(const step& s, std::int64_t segment_units,
                                          const message_size& size) {
  if (!s.segmented) return 1;
  const std::int64_t longest = longest_range(s.blocks.count, s.blocks.parts, size);
  return std::max<std::int64_t>(1, (longest + segment_units - 1) / segment_units);
}

/// The part of a round's units that one segment is.
constexpr extent segment_of(const step& s, const extent& round, std::int64_t segment,
                            std::int64_t segment_units) {
  if (!s.segmented) return round;
  const std::int64_t begin = std::min(round.end, round.begin + segment * segment_units);
  return {begin, std::min(round.end, begin + segment_units)};
}

/// The units of one instance.
constexpr extent instance_extent(const step& s, std::int32_t round, std::int64_t segment,
                                 std::int64_t segment_units, const message_size& size) {
  return segment_of(s, round_extent(s.blocks, round, size), segment, segment_units);
}

/// How many instances of the step depended on must be done (posted, for dependency::posted) before
/// (round, segment) may start; for dependency::in_turn, if messages are large.
constexpr std::int64_t instances_awaited(const dependency& d, std::int32_t round,
                                         std::int64_t segment, std::int64_t segments,
                                         std::int32_t other_rounds, std::int64_t other_instances) {
  if (d.lag == dependency::all || d.lag == dependency::posted) return other_instances;
  const std::int32_t lag = std::max(d.lag, 0);
  if (round < lag) return 0;
  if (round - lag >= other_rounds) return other_instances;
  return (round - lag) * segments + segment + 1;
}

}  // namespace railpass
