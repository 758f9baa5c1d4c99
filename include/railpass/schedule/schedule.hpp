// SPDX-License-Identifier: BSL-1.0
//
// The description of a collective algorithm: a small graph of steps, as plain data. The executor
// runs a schedule, the simulator times it, the checker proves it correct, and the trace draws it.
#pragma once

#include "railpass/schedule/nodes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace railpass {

/// The memory that a step may name. Every buffer is as long as the message, in the message's units,
/// but a rank may own memory for a part of it only (the input of an all_gather is the rank's own
/// block). The checker proves that steps name nothing else. `input` is read only; in an in-place
/// call `input` and `output` are the same memory.
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

/// Steps whose peer must post the other end of a message.
constexpr bool is_message(step_kind k) { return k == step_kind::send || k == step_kind::receive; }
/// Steps on the rank's own memory alone.
constexpr bool is_local(step_kind k) { return k == step_kind::reduce || k == step_kind::copy; }
/// Steps on memory that the ranks of a node share.
constexpr bool is_shared(step_kind k) { return k >= step_kind::publish; }
/// Shared steps that open this rank's own memory to a peer until the end of the call.
constexpr bool opens_memory(step_kind k) { return k == step_kind::offer || k == step_kind::invite; }
/// Shared steps that copy from or to memory that a peer has opened.
constexpr bool is_single_copy(step_kind k) { return k == step_kind::get || k == step_kind::put; }
/// Shared steps that show something at a place; all other shared steps read or write there.
constexpr bool shows(step_kind k) { return k == step_kind::publish || opens_memory(k); }
constexpr bool looks(step_kind k) { return is_shared(k) && !shows(k); }
/// Whether a step reads this rank's own memory, or lets a peer read it.
constexpr bool reads_memory(step_kind k) {
  return k != step_kind::receive && k != step_kind::fetch && k != step_kind::get &&
         k != step_kind::invite;
}
/// Whether a step writes this rank's own memory, or lets a peer write it.
constexpr bool writes_memory(step_kind k) {
  return k != step_kind::send && k != step_kind::publish && k != step_kind::offer &&
         k != step_kind::put;
}

/// The capacity of a shared-memory slot, which limits the bytes of one instance of a publish.
inline constexpr std::int64_t cell_bytes = 8 * 1024;

/// A contiguous part of the message: `count` adjacent blocks, starting with block (first + round *
/// stride) mod parts. The message has `parts` nearly equal blocks, of which the first (units mod
/// parts) are one unit longer. The range never wraps around the end. If ranks have blocks of their
/// own (gather, all_to_allv, ...), num_ranks parts are these blocks, whatever their lengths.
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
/// libraries deliver the end of such a message only after a handshake with the receiver, and over
/// TCP behind everything sent in the meantime, so with many messages in flight a pipeline would
/// forward nothing until the last had arrived. Open MPI 4.1, 8 hosts x 200 Mbit/s, 4 MiB in
/// segments of 64 KiB: 591 ms, with one message at a time 199 ms.
inline constexpr std::int64_t large_message_bytes = 64 * 1024;

/// The most messages of one step in flight.
inline constexpr std::int32_t max_window = 64;

/// One step of a schedule, possibly a loop of rounds x segments instances, which run in the order
/// instance = round * segments + segment. The size of a step does not depend on the number of
/// segments.
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
/// The steps from publish on are for ranks that share memory (see lib/exec/cells.hpp). Published
/// data stay until all ranks have used them, so the publisher waits for no rank unless it is far
/// ahead. Offered or invited data are copied once instead of twice, from one process' memory to
/// another's; the step of the rank that opens its memory ends when the peer has copied. A rank
/// shows something at each of the schedule's `places` at most once per segment. Any rank, including
/// the publisher, may read published data repeatedly. Shared steps have one round and equally many
/// segments on all ranks. A schedule with shared steps has no messages, and its steps can run one
/// after the other, segment by segment. If only the ranks of a node share memory, phases of shared
/// steps and phases of messages alternate (schedule::phases).
///
/// A reduce or copy may read another range of `from` than `blocks` of `to`: equally many blocks of
/// the same `parts`, starting with block (from_first + round * from_stride) mod parts.
///
/// Steps whose next instance may start take turns, one instance each, in the order of the steps.
/// The segments that a rank sends to its children therefore interleave. An executor may bound the
/// messages in flight, but must allow one per step: a step without a message in flight may always
/// start its next instance.
///
/// Peers are virtual ranks, (rank - root) mod num_ranks; the peer of a round is (peer + round *
/// peer_stride) mod num_ranks. An instance with an empty extent does nothing, on both sides alike.
struct step {
  step_kind kind = step_kind::send;
  buffer from = buffer::output;
  buffer to = buffer::output;
  bool segmented = false;  ///< cut each round's extent into segments of the schedule's segment size
  std::int32_t peer = 0;
  std::int32_t peer_stride = 0;
  std::int32_t rounds = 1;
  /// The most messages of the step in flight, counted from the first that has not ended.
  std::int32_t window = max_window;
  block_range blocks{};
  std::int32_t from_first = 0;  ///< for reduce and copy
  std::int32_t from_stride = 0;
  std::int32_t place = 0;             ///< for publish and all kinds after it
  std::int32_t first_dependency = 0;  ///< index into schedule::dependencies
  std::int32_t num_dependencies = 0;
  std::int32_t first_successor = 0;  ///< index into schedule::successors
  std::int32_t num_successors = 0;
  friend bool operator==(const step&, const step&) = default;
};

/// Whether step `x` of rank `rank` reads or writes the data that step `y` of its peer shows.
constexpr bool finds(const step& x, std::int32_t rank, const step& y) {
  if (x.place != y.place) return false;
  if (x.kind == step_kind::get) return y.kind == step_kind::offer && y.peer == rank;
  if (x.kind == step_kind::put) return y.kind == step_kind::invite && y.peer == rank;
  return y.kind == step_kind::publish;
}

/// A condition for the start of a step's instances.
struct dependency {
  /// `all` waits for the end of the other step. Otherwise instance (round, segment) waits for
  /// instance (round - lag, segment) of the other step, and for nothing if round < lag. Both steps
  /// must have equally many segments per round; beyond the other step's last round, the wait is for
  /// its end.
  static constexpr std::int32_t all = -1;
  /// Waits until all instances of the other step, a send or receive, have been posted (not done).
  /// The builder adds this dependency if two sends (receives) of a rank share a peer, so that both
  /// ends post the messages of an ordered pair of ranks in the order of the steps.
  static constexpr std::int32_t posted = -2;
  /// As lag 0 if the messages of the other step, a send, are large_message_bytes or more; else no
  /// dependency. The builder adds it between neighbouring sends, because large messages that
  /// share a link all arrive with the last of them; sent one after the other, they arrive earlier.
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
  /// Extends this part to the smallest part with both; the whole buffer if `parts` differ.
  constexpr void include(const buffer_use& more) {
    if (last == 0)
      *this = more;
    else if (more.last != 0 && parts != more.parts)
      *this = {1, 0, 1};
    else if (more.last != 0)
      *this = {parts, std::min(first, more.first), std::max(last, more.last)};
  }
};

/// The steps of one rank. Message size, root and buffers are bound when the schedule runs, so one
/// schedule serves all sizes and roots.
struct schedule {
  /// The number under which executors cache what they prepared for a schedule; 0: no caching. Only
  /// the library assigns numbers (schedule_cache.hpp), so that no number is used twice.
  std::uint64_t serial = 0;
  std::int32_t rank = 0;  ///< a virtual rank
  std::int32_t num_ranks = 1;
  std::int64_t segment_bytes = 0;  ///< 0: segmented steps have one segment per round
  /// Places per segment at which ranks show data, equal on all ranks; 0: no shared memory.
  std::int32_t places = 0;
  std::array<buffer_use, max_buffers> used{};  ///< parts used, by buffer
  std::vector<step> steps;                     ///< in an order in which they can run sequentially
  std::vector<dependency> dependencies;
  std::vector<std::int32_t> successors;  ///< steps to check again when a step advances
  /// Phases that this rank runs one after the other instead of steps of its own, without a barrier
  /// between them. Phases have no phases. All ranks have equally many phases. A phase is either of
  /// messages on all ranks, or in shared memory on all ranks (places > 0, equal within a node),
  /// where ranks access data of their own node only.
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

/// The phases of a schedule, or the schedule itself if it has none.
inline std::span<const schedule> phases_of(const schedule& s) {
  return s.phases.empty() ? std::span(&s, 1) : std::span<const schedule>(s.phases);
}

/// Whether a step names several blocks of the buffer at once, which must then be adjacent.
inline bool spans_blocks(const schedule& s, buffer b) {
  return std::ranges::any_of(phases_of(s), [&](const schedule& phase) {
    return std::ranges::any_of(phase.steps, [&](const step& x) {
      const bool local = is_local(x.kind);
      return (x.blocks.count > 1 || x.blocks.parts != s.num_ranks) &&
             (x.to == b || (local && x.from == b));
    });
  });
}

/// First unit of block k if `units` are cut into `parts` blocks.
constexpr std::int64_t block_begin(std::int64_t units, std::int64_t parts, std::int64_t k) {
  return k * (units / parts) + std::min(k, units % parts);
}

/// a mod n in [0, n), also for negative a.
constexpr std::int32_t wrap(std::int64_t a, std::int32_t n) {
  const std::int64_t r = a % n;
  return static_cast<std::int32_t>(r < 0 ? r + n : r);
}

/// The physical rank of a virtual rank.
/// @param ranks the ranks' order, if nodes define it (see nodes.hpp); empty: virtual ranks count
///   from the root
constexpr std::int32_t physical_rank(std::int32_t virtual_rank, std::int32_t root,
                                     std::int32_t num_ranks, const rank_order& ranks = {}) {
  return ranks.empty() ? wrap(std::int64_t{virtual_rank} + root, num_ranks) : ranks[virtual_rank];
}

/// The size of the message with which a schedule runs.
struct message_size {
  std::int64_t units = 0;       ///< elements for reductions, bytes otherwise
  std::int64_t unit_bytes = 1;  ///< packed bytes of one unit
  /// The blocks of (virtual) ranks if they are not equal: block k is units [blocks[k].begin, .end),
  /// contiguous and equal on all ranks. Empty: num_ranks equal parts. Borrowed.
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

/// The most units in any range of `count` of `parts` blocks.
constexpr std::int64_t longest_range(std::int32_t count, std::int32_t parts,
                                     const message_size& size) {
  if (std::size_t(parts) != size.blocks.size()) return block_begin(size.units, parts, count);
  std::int64_t longest = 0;
  for (const extent& e : size.blocks) longest = std::max(longest, e.size());
  return longest > size.units / count ? size.units : count * longest;
}

/// Segments per round, the same in every round and at both ends of a message. The lengths of
/// particular blocks do not matter: a segment beyond the end is empty.
constexpr std::int64_t segments_per_round(const step& s, std::int64_t segment_units,
                                          const message_size& size) {
  if (!s.segmented) return 1;
  const std::int64_t longest = longest_range(s.blocks.count, s.blocks.parts, size);
  return std::max<std::int64_t>(1, (longest + segment_units - 1) / segment_units);
}

/// The units of a round's segment.
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

/// The number of instances of the other step that must be done before (round, segment) may start;
/// for dependency::posted they must be posted, for dependency::in_turn only if messages are large.
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
