// SPDX-License-Identifier: BSL-1.0
//
// Runs schedules whose ranks share memory (schedule::places > 0). The schedule runs as a straight
// program: segment by segment, and step by step in each segment. The checker proves that the steps
// can run in this order. So nothing is looked up or queued during the run. On several nodes, such
// schedules are phases among the ranks of each node.
#pragma once

#include "lib/base/yielding.hpp"
#include "lib/exec/call_mark.hpp"
#include "lib/exec/cells.hpp"
#include "lib/exec/memory.hpp"
#include "lib/exec/relay.hpp"
#include "lib/exec/single_copy.hpp"
#include "lib/exec/wait_watch.hpp"
#include "railpass/base/error.hpp"
#include "railpass/schedule/cells.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <system_error>
#include <vector>

namespace railpass::internal {

/// For one rank of a communicator. All its ranks must run the same schedules in the same order. Not
/// thread-safe.
///
/// Functions return 0, or the first nonzero code of a data hook or of wait_watch::look. After such
/// a code, no rank may run any further schedule.
class cell_executor {
 public:
  /// `regions`: by physical rank, new to this communicator, and owned by the caller. Regions of
  /// other nodes have no memory, nor has this rank's region if the rank is alone on its node.
  /// `own_core`: no other rank needs this rank's core, so a waiting rank may keep it for a while.
  cell_executor(const cell_regions& regions, std::int32_t rank, bool own_core)
      : regions_(regions),
        rank_(rank),
        own_core_(own_core),
        yields_(own_core),
        relay_(regions, rank) {}
  cell_executor(const cell_executor&) = delete;
  cell_executor& operator=(const cell_executor&) = delete;

  /// The number of places that a schedule may have: limited by the smaller of the rings in use.
  static constexpr std::uint64_t most_places(const schedule& s) {
    const bool publishes =
        std::ranges::any_of(s.steps, [](const step& x) { return x.kind == step_kind::publish; });
    return cell_region::num_cells[publishes ? 0 : 1];
  }
  static constexpr bool fits(const schedule& s) {
    return std::uint64_t(s.places) <= most_places(s);
  }

  /// Programs at a time, because phases of a schedule take turns.
  static constexpr std::size_t num_programs = 2;

  /// Allocates what a call of this schedule and size needs, as program `number`.
  void prepare(const schedule& s, const binding& b, std::size_t number = 0) {
    bind(programs_[number], s, b);
  }

  /// Runs the schedule to its end. Collective over the ranks of a node. All memory is allocated
  /// before anything is published: std::bad_alloc is thrown before that or not at all. Throws error
  /// if the kernel cannot copy from or to a peer's memory, or if one rank gives more than the other
  /// rank has room for. As after nonzero codes, no schedule may follow, and no peer writes to this
  /// rank's memory any more. If the kernel refuses copies, ranks hand data over through shared
  /// memory. `number`: see prepare().
  int run(const schedule& s, const binding& b, const wait_watch& watch = {},
          std::size_t number = 0) {
    program& p = programs_[number];
    bind(p, s, b);
    if (b.size.units == 0) return 0;
    const int code = p.opens_memory ? run_opened(p, s, watch) : run_segments(p, s, watch);
    if (code == 0) p.memory.give_back();
    return code;
  }

  /// Whether the kernel has refused this rank a copy from or to another rank's memory.
  bool refuses_copies() const { return refuses_copies_; }

  /// This rank leaves its call of this number (from 1 on) to the MPI library.
  void note_native(std::uint64_t call) const {
    // A rank that is alone on its host has no memory.
    if (const cell_region& mine = regions_[rank_]; mine.memory()) mine.note_native(call);
  }
  /// Whether `call` is the last call that the other rank has left to the MPI library; false:
  /// unknown.
  bool is_native(std::int32_t rank, std::uint64_t call) const {
    const cell_region& theirs = regions_[rank];
    return theirs.memory() && theirs.native_call() == call;
  }

 private:
  // Content of a cell that opens memory to a peer.
  struct opened_memory {
    std::byte* address = nullptr;
    std::int64_t bytes = 0;
  };
  // A round of a step.
  struct action {
    step_kind kind = step_kind::publish;
    bool segmented = false;
    bool is_packed = false;  // the previous action gives the same data to another peer
    buffer from = buffer::output;
    buffer to = buffer::output;
    std::int32_t peer = 0;  // physical
    std::int32_t place = 0;
    std::int64_t begin = 0, end = 0;  // units, of all segments
    std::int64_t from_distance = 0;   // local work: the unit read for unit u is u + from_distance
  };
  // A schedule, identified by its serial number, prepared for a size.
  struct program {
    std::uint64_t serial = 0;
    bound_memory memory;
    std::vector<action> actions;
    bool opens_memory = false;
    std::uint64_t places = 0;
    std::int64_t segments = 0, segment_units = 1;
  };
  // During its life, peers may access this rank's memory.
  struct opening {
    cell_executor& of;
    bool fails = true;  // also if an exception is thrown
    opening(cell_executor& one, const program& opens) : of(one) { of.open_ = &opens; }
    ~opening() {
      if (fails) of.relay_.close_all();
      of.open_ = nullptr;
    }
  };

  int run_opened(const program& p, const schedule& s, const wait_watch& watch) {
    opening while_open(*this, p);
    const int code = run_segments(p, s, watch);
    while_open.fails = code != 0;
    return code;
  }
  int run_segments(const program& p, const schedule& s, const wait_watch& watch) {
    const cell_region& mine = regions_[rank_];
    for (std::int64_t segment = 0; segment < p.segments; ++segment) {
      for (const action& a : p.actions) {
        if (segment > 0 && !a.segmented) continue;
        const std::int64_t skipped = segment * p.segment_units;
        const std::int64_t begin = a.begin + skipped;
        const std::int64_t units =
            a.segmented ? std::min(p.segment_units, a.end - begin) : a.end - begin;
        if (units <= 0) continue;
        if (const int code = act(p, a, segment, begin, units, watch)) return code;
      }
      const std::uint64_t done = first_ + number_in_call(s, s.places, segment);
      if (mine.memory()) mine.acknowledge(done);
      watch.note_progress();
    }
    first_ += number_in_call(s, 0, p.segments);
    return p.opens_memory ? wait_until_closed(p, watch) : 0;
  }

  // Polls before a wait does anything else.
  static constexpr int polls_on_own_core = 64, polls_on_shared_core = 4;
  static constexpr unsigned polls_per_look = 1024;  // whatever the clock says
  // After these times, MPI and rails progress, at the given intervals (s). On a shared core, turns
  // of other threads take longer than a look. About 2 and 20 us, with few bits, so that sums with
  // clock times are exact.
  static constexpr double first_look_s = 0x1p-19, look_interval_s = 0x1p-19,
                          look_interval_on_shared_core_s = 0x1.4p-16;

  void bind(program& p, const schedule& s, const binding& b) {
    const binding& before = p.memory.bound();
    const bool again = s.serial != 0 && s.serial == p.serial && b.root == before.root &&
                       b.size.units == before.size.units &&
                       b.size.unit_bytes == before.size.unit_bytes &&
                       (b.input == b.output) == p.memory.same(buffer::input, buffer::output) &&
                       is_simple(b) && is_simple(before);
    p.memory.bind(b);
    if (again) return p.memory.lay_out_again(s);
    p.serial = 0;
    p.opens_memory = false;
    p.actions.clear();
    if (b.size.units == 0) return;
    p.memory.lay_out(s);
    if (!fits(s))
      throw error("a schedule needs " + std::to_string(s.places) +
                  " places in shared memory, expected at most " + std::to_string(most_places(s)));
    p.places = std::uint64_t(s.places);
    p.segments = shared_segments(s, b.size);
    p.segment_units = b.size.segment_units(s.segment_bytes);
    for (const step& x : s.steps)
      for (std::int32_t round = 0; round < x.rounds; ++round) {
        p.actions.push_back(action_of(p, s, x, round));
        const action& a = p.actions.back();
        p.opens_memory = p.opens_memory || (opens_memory(a.kind) && a.end > a.begin);
        if (is_single_copy(a.kind)) copies_.prepare();
      }
    p.serial = s.serial;
  }
  static bool is_simple(const binding& b) {
    return !b.hooks.pack && b.size.blocks.empty() && b.input_blocks.empty() &&
           b.output_blocks.empty();
  }

  action action_of(const program& p, const schedule& s, const step& x, std::int32_t round) const {
    const binding& b = p.memory.bound();
    const extent whole = round_extent(x.blocks, round, size_of(p, s, x.to, x.blocks.parts));
    action a{.kind = x.kind,
             .segmented = x.segmented,
             .from = x.from,
             .to = x.to,
             .peer = physical_rank(x.peer, b.root, s.num_ranks, b.ranks),
             .place = x.place,
             .begin = whole.begin,
             .end = whole.end};
    if (is_local(x.kind))
      a.from_distance = round_source(x, round, size_of(p, s, x.from, x.blocks.parts)) - whole.begin;
    const std::int64_t most = x.segmented ? std::min(p.segment_units, whole.size()) : whole.size();
    const bool in_cells = is_shared(x.kind) && ring_of(x.kind) == cell_ring::published;
    if (is_message(x.kind) || (in_cells && most * b.size.unit_bytes > cell_bytes))
      throw error(
          "a step of a schedule in shared memory is a message, or longer than a slot of shared "
          "memory");
    if (x.kind == step_kind::copy && a.from_distance == 0 && p.memory.same(x.from, x.to))
      a.end = a.begin;
    // A peer may be reading the packed bytes already.
    if (!p.actions.empty()) {
      const action& before = p.actions.back();
      a.is_packed = before.kind == a.kind && before.from == a.from && before.begin == a.begin &&
                    before.end == a.end && before.segmented == a.segmented;
    }
    return a;
  }
  // The size, with the extents of the blocks in that buffer.
  message_size size_of(const program& p, const schedule& s, buffer of, std::int32_t parts) const {
    const binding& b = p.memory.bound();
    message_size size = b.size;
    if (parts != s.num_ranks) return size;
    if (of == buffer::input && !b.input_blocks.empty()) size.blocks = b.input_blocks;
    if (of == buffer::output && !b.output_blocks.empty()) size.blocks = b.output_blocks;
    return size;
  }

  int act(const program& p, const action& a, std::int64_t segment, std::int64_t begin,
          std::int64_t units, const wait_watch& watch) {
    const std::int64_t source = begin + a.from_distance;
    switch (a.kind) {
      case step_kind::publish:
        return publish(p, a, number_of(p, a, segment), begin, units, watch);
      case step_kind::offer:
      case step_kind::invite:
        return show(p, a, number_of(p, a, segment), begin, units, watch);
      case step_kind::fetch:
      case step_kind::combine:
      case step_kind::get:
      case step_kind::put:
        return look_at(p, a, number_of(p, a, segment), begin, units, watch);
      case step_kind::reduce:
        return p.memory.reduce(a.from, source, a.to, begin, units);
      default:
        return p.memory.copy(a.from, source, a.to, begin, units);
    }
  }
  std::uint64_t number_of(const program& p, const action& a, std::int64_t segment) const {
    return first_ + std::uint64_t(segment) * p.places + std::uint64_t(a.place);
  }

  int publish(const program& p, const action& a, std::uint64_t number, std::int64_t begin,
              std::int64_t units, const wait_watch& watch) {
    constexpr cell_ring ring = cell_ring::published;
    if (const int code = wait_for_room(ring, number, watch)) return code;
    const cell_region& mine = regions_[rank_];
    if (const int code = p.memory.publish(a.from, begin, units, mine.content(ring, number)))
      return code;
    mine.show(ring, number, p.memory.bound().mark);
    return 0;
  }
  int show(const program& p, const action& a, std::uint64_t number, std::int64_t begin,
           std::int64_t units, const wait_watch& watch) {
    constexpr cell_ring ring = cell_ring::opened;
    if (const int code = wait_for_room(ring, number, watch)) return code;
    const cell_region& mine = regions_[rank_];
    if (a.kind == step_kind::offer && !a.is_packed)
      if (const int code = p.memory.pack_opened(a.from, begin, units)) return code;
    const opened_memory what{.address = p.memory.opened(a.to, begin), .bytes = bytes_of(p, units)};
    std::memcpy(mine.content(ring, number), &what, sizeof what);
    mine.show(ring, number, p.memory.bound().mark);
    return 0;
  }
  std::int64_t bytes_of(const program& p, std::int64_t units) const {
    return units * p.memory.bound().size.unit_bytes;
  }
  // Acknowledgements of other ranks are read only when needed, and then remembered.
  int wait_for_room(cell_ring ring, std::uint64_t number, const wait_watch& watch) {
    const std::uint64_t before =
        acknowledged_before(number, cell_region::num_cells[std::size_t(ring)]);
    if (before <= all_acknowledged_) return 0;
    std::uint64_t least = ~std::uint64_t{0};
    for (const cell_regions::entry& e : regions_) {
      if (e.rank == rank_ || !e.region.memory()) continue;
      std::uint64_t theirs = 0;
      const auto enough = [&] {
        theirs = e.region.first_needed();
        return theirs >= before;
      };
      if (const int code = wait(enough, e.rank, watch)) return code;
      least = std::min(least, theirs);
    }
    all_acknowledged_ = least;
    return 0;
  }
  int look_at(const program& p, const action& a, std::uint64_t number, std::int64_t begin,
              std::int64_t units, const wait_watch& watch) {
    const cell_region& theirs = regions_[a.peer];
    const cell_ring ring = ring_of(a.kind);
    const auto is_there = [&] { return theirs.shows(ring, number); };
    if (const int code = wait(is_there, a.peer, watch)) return code;
    const call_mark found = theirs.mark(ring, number);
    if (found != p.memory.bound().mark) [[unlikely]]
      refuse(a.peer, found, p.memory.bound().mark);
    const std::byte* cell = theirs.content(ring, number);
    if (a.kind == step_kind::fetch) return p.memory.fetch(cell, a.to, begin, units);
    if (a.kind == step_kind::combine) return p.memory.combine(cell, a.to, begin, units);
    opened_memory there;
    std::memcpy(&there, cell, sizeof there);
    std::byte* const here = p.memory.opened(a.to, begin);
    const bool gets = a.kind == step_kind::get;
    const std::int64_t mine = bytes_of(p, units);
    if (there.bytes != mine) [[unlikely]]
      refuse_lengths(gets ? a.peer : rank_, gets ? there.bytes : mine, gets ? rank_ : a.peer,
                     gets ? mine : there.bytes);
    if (!gets && !a.is_packed)
      if (const int code = p.memory.pack_opened(a.from, begin, units)) return code;
    if (const int code = copy(a, number, there.address, here, std::size_t(mine), watch))
      return code;
    return gets ? p.memory.unpack_opened(a.to, begin, units) : 0;
  }
  [[noreturn, gnu::cold]] static void refuse(std::int32_t peer, call_mark theirs, call_mark ours) {
    throw unlike_calls("rank " + std::to_string(peer) + " " + call_mark::difference(theirs, ours));
  }
  // For lengths that only the two ranks know.
  [[noreturn, gnu::cold]] static void refuse_lengths(std::int32_t from, std::int64_t given,
                                                     std::int32_t to, std::int64_t expected) {
    throw unlike_calls("rank " + std::to_string(from) + " gives " + std::to_string(given) +
                       " bytes to rank " + std::to_string(to) + ", which expects " +
                       std::to_string(expected));
  }
  // Copies from or to memory that a peer has opened under `number`.
  int copy(const action& a, std::uint64_t number, std::byte* there, std::byte* here,
           std::size_t bytes, const wait_watch& watch) {
    const bool gets = a.kind == step_kind::get;
    std::size_t done = 0;
    if (!refuses_copies_) {
      const relay::visit inside(relay_, a.peer, number);
      const pid_t peer = regions_[a.peer].process();
      if (!inside.is_in())
        throw error("rank " + std::to_string(a.peer) + " has left the call, which failed there");
      done = gets ? copies_.copy_from(peer, there, here, bytes)
                  : copies_.copy_to(peer, there, here, bytes);
      if (done < bytes) note_failure(errno, a, done, bytes);
    }
    while (done < bytes) {
      const std::size_t n = std::min(bytes - done, relay::portion_bytes);
      if (!gets) std::memcpy(relay_.portion(), here + done, n);
      relay_.ask(a.peer, there + done, n, !gets);
      if (const int code = wait([this] { return relay_.is_answered(); }, a.peer, watch))
        return code;
      if (gets) std::memcpy(here + done, relay_.portion(), n);
      done += n;
    }
    return 0;
  }
  // For a copy that the kernel has not made.
  void note_failure(int why, const action& a, std::size_t done, std::size_t bytes) {
    refuses_copies_ = why == EPERM || why == EACCES || why == ENOSYS;
    if (refuses_copies_) return;
    throw error(std::string(a.kind == step_kind::get ? "reading " : "writing ") +
                std::to_string(bytes) + " bytes of the memory of process " +
                std::to_string(regions_[a.peer].process()) + ": " +
                std::generic_category().message(why) + " after " + std::to_string(done));
  }
  // Answers requests of peers that may not copy themselves.
  void answer_peers(const program& p) const {
    relay_.answer([&](std::int32_t peer, const std::byte* at, std::int64_t bytes, bool writes) {
      return std::ranges::any_of(p.actions, [&](const action& a) {
        if (!opens_memory(a.kind) || a.peer != peer || (a.kind == step_kind::invite) != writes)
          return false;
        const auto from = reinterpret_cast<std::uintptr_t>(at) -
                          reinterpret_cast<std::uintptr_t>(p.memory.opened(a.to, a.begin));
        const auto room = std::uintptr_t(bytes_of(p, a.end - a.begin));
        return from <= room && std::uintptr_t(bytes) <= room - from;
      });
    });
  }
  // Waits until the ranks that were let into this rank's memory have finished the call.
  int wait_until_closed(const program& p, const wait_watch& watch) const {
    for (const action& a : p.actions) {
      if (!opens_memory(a.kind) || a.end == a.begin) continue;
      const cell_region& theirs = regions_[a.peer];
      const auto is_through = [&] { return theirs.first_needed() >= first_; };
      if (const int code = wait(is_through, a.peer, watch)) return code;
    }
    for (const action& a : p.actions)
      if (a.kind == step_kind::invite)
        if (const int code = p.memory.unpack_opened(a.to, a.begin, a.end - a.begin)) return code;
    return 0;
  }

  template <class Condition>
  int wait(const Condition& holds, std::int32_t peer, const wait_watch& watch) const {
    for (int polls = own_core_ ? polls_on_own_core : polls_on_shared_core; polls > 0; --polls) {
      if (holds()) return 0;
      relax();
    }
    return wait_longer(holds, peer, watch);
  }
  template <class Condition>
  [[gnu::noinline]] int wait_longer(const Condition& holds, std::int32_t peer,
                                    const wait_watch& watch) const {
    const double started_s = watch.clock();
    double next_look_s = started_s + first_look_s;
    patience left(watch.report ? watch.after_s : 0, started_s);
    for (unsigned polls = 1; !holds(); ++polls) {
      const double now_s = watch.clock();
      const bool looks = now_s >= next_look_s || polls % polls_per_look == 0;
      if (looks || !own_core_) yields_.offer_core();
      if (!looks) continue;
      if (open_) answer_peers(*open_);
      if (watch.look)
        if (const int code = watch.look(watch.user_data)) return code;
      next_look_s = now_s + (own_core_ ? look_interval_s : look_interval_on_shared_core_s);
      if (!left.is_out(now_s)) continue;
      const awaited_peer who{.rank = peer, .receives = 1};
      watch.report(watch.user_data, {&who, 1}, left.waited_s(now_s));
    }
    watch.note_progress();
    return 0;
  }
  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  const cell_regions& regions_;
  std::int32_t rank_;
  bool own_core_;
  mutable yielding yields_;
  std::array<program, num_programs> programs_;
  relay relay_;
  single_copies copies_;
  const program* open_ = nullptr;  // the program in which peers may access this rank's memory
  bool refuses_copies_ = false;
  std::uint64_t first_ = 0;             // number of the next call
  std::uint64_t all_acknowledged_ = 0;  // a lower bound, for all other ranks
};

}  // namespace railpass::internal
