// SPDX-License-Identifier: BSL-1.0
//
// Proves that the schedules of all ranks together do what their collective promises. No MPI, no
// data: every unit of memory holds a symbol instead of a value.
//
// What is proved, for one number of ranks and one size
//   messages  of an ordered pair of ranks are posted in one order only, whatever the timing, the
//             k-th send meets the k-th receive, and both are equally long.
//   data      every unit of every rank's output is what railpass/schedule/promise.hpp says.
//             Reductions: it has every contribution once, in rank order if the operation does not
//             commute; an all_reduce's is the same expression, operand for operand, on all ranks:
//             thus the same bits, though rounding is not associative. The input is not written
//             (unless it is the output), no memory is named that a rank does not have, and nothing
//             is read before it has been written.
//   arrival   of a barrier: each rank's end comes, by dependencies and messages, after the
//   beginning
//             of every other rank.
//   races     two instances of steps that touch the same memory, one of them writing, are ordered
//             by dependencies. A message occupies its memory from posting to completion. So the
//             data are as above in whatever order the steps run.
//   ending    with synchronous sends, which end only when their receive is posted, all ranks reach
//             the end. The executor has at most 64 messages in flight each way, but a step with
//             none in flight may always start one. The play in which each step has one at a time
//             ends whatever the order of turns, as no step ever competes with another; and with a
//             larger window more messages are posted, never fewer. That play is the proof; another
//             one with the executor's window moves the data.
//   memory    of a schedule is at most 64 KiB up to 64 ranks. It cannot grow with the number of
//             segments, which building a schedule does not know.
//
// Roots: but for reductions in rank order, schedules are written in virtual ranks, and the executor
// renames them one to one (physical_rank). What is proved for one root is thereby proved for all;
// the root of a check only serves to name ranks.
#pragma once

#include "railpass/schedule/promise.hpp"
#include "railpass/schedule/schedule.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace railpass {

struct check_case {
  promise what = promise::root_to_all;
  /// Physical rank of virtual rank 0, for messages only; but the rank that gets the result of a
  /// reduce_to_root that does not commute (shape::result_rank).
  std::int32_t root = 0;
  bool commutative = true;  ///< reductions: any order of operands will do
  bool in_place = false;    ///< input and output are the same memory where the promise allows that
  message_size size{};
  bool prove_ending = true;  ///< false where it is known: it does not depend on where data are
  /// Only the two ranks that exchange a block know its length: steps may name single blocks of
  /// their own or of a peer only.
  bool lengths_of_pair = false;
  /// blocks_to_blocks with unequal blocks: num_ranks * num_ranks lengths, entry i * num_ranks + j
  /// of the block from rank i to rank j; empty: all are equal. size.units is then the longest sum
  /// of a row or column. Borrowed.
  std::span<const std::int64_t> lengths{};
};

struct check_result {
  bool ok = true;
  std::int64_t steps = 0;        ///< instances of steps with data in them, over all ranks
  std::size_t memory_bytes = 0;  ///< of the largest schedule
  bool all_ready_at_start = true;
  std::string message;  ///< what is wrong: rank, step, unit, what was expected
};

inline constexpr std::size_t max_schedule_bytes = 64 * 1024;
inline constexpr std::int32_t max_ranks_for_schedule_bytes = 64;

/// Whether all of a rank's messages and local work can be posted at once: then a nonblocking call
/// needs nobody to advance it. No step may wait for another one to end, and the messages must fit
/// in the executor's window.
inline bool all_ready_at_start(const schedule& s, const message_size& size,
                               std::int64_t window = 64) {
  std::int64_t sends = 0, receives = 0;
  for (const step& x : s.steps) {
    for (const dependency& d : s.dependencies_of(x))
      if (d.lag != dependency::posted &&
          (d.lag != dependency::in_turn || size.bytes() >= large_message_bytes))
        return false;
    const std::int64_t instances =
        x.rounds * segments_per_round(x, size.segment_units(s.segment_bytes), size);
    if (x.kind != step_kind::reduce && x.kind != step_kind::copy && instances > x.window)
      return false;
    if (x.kind == step_kind::send) sends += instances;
    if (x.kind == step_kind::receive) receives += instances;
  }
  return sends <= window && receives <= window;
}

/// Keeps its memory from check to check.
class checker {
 public:
  /// Checks the schedules of all ranks, in the order of their virtual ranks.
  check_result check(std::span<const schedule> schedules, const check_case& c) {
    result_ = {};
    schedules_ = schedules;
    case_ = c;
    p_ = std::int32_t(schedules.size());
    traits_ = traits_of(c.what);
    // Reductions in rank order have physical ranks.
    rotation_ = traits_.reduces && !c.commutative ? 0 : c.root;
    first_root_ = rotation_ == c.root ? 0 : c.root;
    place_blocks();
    const bool ok =
        check_form() && expand() && check_posting_order() && check_races() && play_all();
    result_.ok = ok;
    return std::move(result_);
  }

 private:
  using index = std::int32_t;
  static constexpr index none = -1;
  static constexpr index max_in_flight = 64;

  // A step of one rank.
  struct task {
    const step* what = nullptr;
    index rank = 0;
    index number = 0;  // in its schedule
    index first = 0;   // its instances: [first, first + total)
    index total = 0;
    index segments = 1;
    // while playing
    index next = 0;  // posted
    index done = 0;
    std::uint64_t late = 0;  // bit k: instance done + k is done
    bool queued = false;
  };
  struct instance {
    index begin = 0, end = 0;  // units
    index from = 0;            // reduce and copy: the first unit that is read
    index peer = 0;
    index next = none;  // in the queue of a pair of ranks
    index owner = 0;    // task
    bool empty() const { return begin == end; }
  };
  // A symbol: which expression of which unit. Expression 0 is "never written".
  struct symbol {
    std::uint32_t expression = 0;
    std::uint32_t unit = 0;
    friend bool operator==(const symbol&, const symbol&) = default;
  };

  // --- messages for people

  index physical(index v) const { return physical_rank(v, rotation_, p_); }
  std::string rank_text(index v) const { return "rank " + std::to_string(physical(v)); }
  static std::string buffer_text(buffer b) {
    static constexpr std::array<const char*, max_buffers> names{"input",    "output",   "scratch0",
                                                                "scratch1", "scratch2", "scratch3"};
    return names[std::size_t(b)];
  }
  std::string step_text(const step& s, index peer) const {
    switch (s.kind) {
      case step_kind::send:
        return "send of " + buffer_text(s.from) + " to " + rank_text(peer);
      case step_kind::receive:
        return "receive into " + buffer_text(s.to) + " from " + rank_text(peer);
      case step_kind::reduce:
        return "reduce of " + buffer_text(s.from) + " into " + buffer_text(s.to);
      default:
        return "copy of " + buffer_text(s.from) + " to " + buffer_text(s.to);
    }
  }
  std::string form_text(index rank, std::size_t number) const {
    const step& s = schedules_[std::size_t(rank)].steps[number];
    return rank_text(rank) + " step " + std::to_string(number) + " (" + step_text(s, s.peer) + ")";
  }
  std::string instance_text(index i) const {
    const instance& x = instances_[std::size_t(i)];
    const task& t = tasks_[std::size_t(x.owner)];
    const index k = i - t.first;
    std::string text =
        rank_text(t.rank) + " step " + std::to_string(t.number) + " (" + step_text(*t.what, x.peer);
    if (t.what->rounds > 1) text += ", round " + std::to_string(k / t.segments);
    if (t.segments > 1) text += ", segment " + std::to_string(k % t.segments);
    return text + ") units [" + std::to_string(x.begin) + ", " + std::to_string(x.end) + ")";
  }
  bool fail(std::string text) {
    if (result_.message.empty()) result_.message = std::move(text);
    return false;
  }

  // --- the form of each schedule

  bool check_form() {
    if (p_ < 1) return fail("no schedules");
    for (index v = 0; v < p_; ++v) {
      const schedule& s = schedules_[std::size_t(v)];
      if (s.rank != v || s.num_ranks != p_)
        return fail(rank_text(v) + ": the schedule says rank " + std::to_string(s.rank) + " of " +
                    std::to_string(s.num_ranks) + ", expected " + std::to_string(v) + " of " +
                    std::to_string(p_));
      if (s.segment_bytes != schedules_[0].segment_bytes)
        return fail(rank_text(v) + ": segment_bytes is " + std::to_string(s.segment_bytes) +
                    ", rank " + std::to_string(physical(0)) + " has " +
                    std::to_string(schedules_[0].segment_bytes));
      for (std::size_t i = 0; i < s.steps.size(); ++i)
        if (!check_step(v, i)) return false;
      result_.memory_bytes = std::max(result_.memory_bytes, s.memory_bytes());
      if (result_.all_ready_at_start)
        result_.all_ready_at_start = all_ready_at_start(s, case_.size);
    }
    if (p_ <= max_ranks_for_schedule_bytes && result_.memory_bytes > max_schedule_bytes)
      return fail("a schedule takes " + std::to_string(result_.memory_bytes) +
                  " bytes, expected at most " + std::to_string(max_schedule_bytes));
    return true;
  }

  bool check_step(index v, std::size_t number) {
    const schedule& s = schedules_[std::size_t(v)];
    const step& x = s.steps[number];
    const block_range& b = x.blocks;
    const auto wrong = [&](const std::string& text) {
      return fail(form_text(v, number) + ": " + text);
    };
    const bool message = x.kind == step_kind::send || x.kind == step_kind::receive;
    if (x.rounds < 1)
      return wrong("rounds is " + std::to_string(x.rounds) + ", expected 1 or more");
    if (x.window < 1 || x.window > max_window)
      return wrong("window is " + std::to_string(x.window) + ", expected 1 to " +
                   std::to_string(max_window));
    if (b.parts < 1 || b.count < 1 || b.count > b.parts)
      return wrong("takes " + std::to_string(b.count) + " of " + std::to_string(b.parts) +
                   " blocks");
    if (case_.lengths_of_pair && !knows_lengths(x, v))
      return wrong(
          "does not know how long the block is: expected single unsegmented blocks of its "
          "own rank or of the peer");
    for (index r = 0; r < x.rounds; ++r) {
      if (wrap(b.first + std::int64_t{r} * b.stride, b.parts) + b.count > b.parts ||
          (!message &&
           wrap(x.from_first + std::int64_t{r} * x.from_stride, b.parts) + b.count > b.parts))
        return wrong("the blocks of round " + std::to_string(r) +
                     " go beyond the end of the message");
      if (message && peer_of(x, r, p_) == v)
        return wrong("the peer of round " + std::to_string(r) + " is the rank itself");
    }
    if (x.kind != step_kind::send && x.to == buffer::input) return wrong("writes the input");
    if (!message && x.from == x.to) return wrong("source and target are the same buffer");
    for (const dependency& d : s.dependencies_of(x)) {
      if (d.step < 0 || std::size_t(d.step) >= number)
        return wrong("waits for step " + std::to_string(d.step) + ", expected an earlier one");
      const step& other = s.steps[std::size_t(d.step)];
      const std::int64_t segment = case_.size.segment_units(s.segment_bytes);
      if ((d.lag >= 0 || d.lag == dependency::in_turn) &&
          segments_per_round(x, segment, case_.size) !=
              segments_per_round(other, segment, case_.size))
        return wrong("waits for single segments of step " + std::to_string(d.step) +
                     ", which has another number of them");
      const auto told = s.successors_of(other);
      if (std::find(told.begin(), told.end(), index(number)) == told.end())
        return wrong("is not among the successors of step " + std::to_string(d.step) +
                     ", which it waits for");
    }
    return true;
  }

  bool knows_lengths(const step& x, index v) const {
    const block_range& b = x.blocks;
    if (b.parts != p_ || b.count != 1 || x.segmented || x.from >= buffer::scratch0 ||
        x.to >= buffer::scratch0)
      return false;
    if (x.kind == step_kind::reduce || x.kind == step_kind::copy)
      return x.rounds == 1 && b.first == v && x.from_first == v;
    for (index r = 0; r < x.rounds; ++r) {
      const index block = wrap(b.first + std::int64_t{r} * b.stride, p_);
      if (block != v && block != peer_of(x, r, p_)) return false;
    }
    return true;
  }

  // --- where blocks are

  void place_blocks() {
    tables_.clear();
    if (case_.lengths.empty()) return;
    // By rank: the blocks of its input, then those of its output.
    for (index v = 0; v < p_; ++v)
      for (const bool out : {false, true}) {
        std::int64_t at = 0;
        for (index k = 0; k < p_; ++k) {
          const std::int64_t length = case_.lengths[std::size_t(out ? k * p_ + v : v * p_ + k)];
          tables_.push_back({at, at + length});
          at += length;
        }
      }
  }
  message_size size_of(index v, buffer b) const {
    if (tables_.empty() || b >= buffer::scratch0) return case_.size;
    message_size size = case_.size;
    size.blocks = {tables_.data() + (std::size_t(v) * 2 + std::size_t(b)) * std::size_t(p_),
                   std::size_t(p_)};
    size.units = size.blocks.back().end;
    return size;
  }
  extent block_of(index v, buffer b, index k) const {
    return blocks_extent(k, 1, p_, size_of(v, b));
  }
  bool aliased(index v) const {
    return case_.in_place && (traits_.in_place == in_place_ranks::all ||
                              (traits_.in_place == in_place_ranks::root && v == first_root_));
  }

  // The units of its output that a rank has memory for.
  extent output_of(index v) const {
    const extent all{0, size_of(v, buffer::output).units}, none_at_all{0, 0};
    switch (case_.what) {
      case promise::reduce_to_root:  // rank 0 passes it on
        return v == first_root_ || v == 0 ? all : none_at_all;
      case promise::blocks_to_root:
        return v == 0 ? all : none_at_all;
      case promise::prefix_before:
        return v > 0 ? all : none_at_all;
      case promise::reduce_to_blocks:
      case promise::root_to_blocks:
        return block_of(v, buffer::output, v);
      default:
        return all;
    }
  }

  // --- instances

  bool expand() {
    tasks_.clear();
    instances_.clear();
    first_task_.assign(1, 0);
    const std::int64_t segment_units = case_.size.segment_units(schedules_[0].segment_bytes);
    for (index v = 0; v < p_; ++v) {
      const schedule& s = schedules_[std::size_t(v)];
      for (std::size_t i = 0; i < s.steps.size(); ++i) {
        const step& x = s.steps[i];
        task t{.what = &x, .rank = v, .number = index(i), .first = index(instances_.size())};
        const message_size to_size = size_of(v, x.to), from_size = size_of(v, x.from);
        t.segments = index(segments_per_round(x, segment_units, to_size));
        t.total = x.rounds * t.segments;
        const bool message = x.kind == step_kind::send || x.kind == step_kind::receive;
        for (index r = 0; r < x.rounds; ++r) {
          const extent whole = round_extent(x.blocks, r, to_size);
          const index peer = message ? peer_of(x, r, p_) : v;
          const std::int64_t from = message ? whole.begin : round_source(x, r, from_size);
          for (index k = 0; k < t.segments; ++k) {
            const extent e = segment_of(x, whole, k, segment_units);
            instances_.push_back({.begin = index(e.begin),
                                  .end = index(e.end),
                                  .from = index(from + e.begin - whole.begin),
                                  .peer = peer,
                                  .owner = index(tasks_.size())});
            if (e.size() > 0) ++result_.steps;
          }
          if (!message && whole.size() != source_length(x, r, from_size))
            return fail(form_text(v, i) + ": reads and writes ranges of different lengths");
          if (x.kind != step_kind::send && whole.size() > 0 && x.to == buffer::output) {
            const extent mine = output_of(v);
            if (whole.begin < mine.begin || whole.end > mine.end)
              return fail(form_text(v, i) + ": writes units [" + std::to_string(whole.begin) +
                          ", " + std::to_string(whole.end) +
                          ") of its output, but only has memory for [" +
                          std::to_string(mine.begin) + ", " + std::to_string(mine.end) + ")");
          }
          if (!in_scratch(s, x.to, whole) ||
              (!message && !in_scratch(s, x.from, {from, from + whole.size()})))
            return fail(form_text(v, i) + not_in_scratch);
        }
        tasks_.push_back(t);
      }
      first_task_.push_back(index(tasks_.size()));
    }
    return true;
  }
  static constexpr const char* not_in_scratch =
      ": names a part of a scratch buffer that schedule::used does not";
  static std::int64_t source_length(const step& x, index round, const message_size& size) {
    const block_range range{.parts = x.blocks.parts,
                            .first = x.from_first,
                            .stride = x.from_stride,
                            .count = x.blocks.count};
    return round_extent(range, round, size).size();
  }
  bool in_scratch(const schedule& s, buffer b, const extent& e) const {
    if (b < buffer::scratch0) return true;
    const buffer_use& u = s.use_of(b);
    if (u.last == 0) return false;
    const extent used = blocks_extent(u.first, u.last - u.first, u.parts, case_.size);
    return e.begin >= used.begin && e.end <= used.end;
  }
  std::span<task> tasks_of(index v) {
    return {tasks_.data() + first_task_[std::size_t(v)],
            std::size_t(first_task_[std::size_t(v) + 1] - first_task_[std::size_t(v)])};
  }
  std::span<const dependency> dependencies_of(const task& t) const {
    return schedules_[std::size_t(t.rank)].dependencies_of(*t.what);
  }

  // --- messages of a pair are posted in the order of the steps

  bool check_posting_order() {
    latest_.assign(std::size_t(p_) * 2, none);
    for (index v = 0; v < p_; ++v) {
      const std::span<task> mine = tasks_of(v);
      for (const task& t : mine) {
        const bool sends = t.what->kind == step_kind::send;
        if (!sends && t.what->kind != step_kind::receive) continue;
        for (index r = 0; r < t.what->rounds; ++r) {
          const index peer = instances_[std::size_t(t.first + r * t.segments)].peer;
          index& before = latest_[std::size_t(peer) * 2 + (sends ? 1 : 0)];
          if (before != none && before != t.number) {
            const auto waits = dependencies_of(t);
            const bool ordered = std::any_of(waits.begin(), waits.end(), [&](const dependency& d) {
              return d.step == before && d.lag < 0 && d.lag != dependency::in_turn;
            });
            if (!ordered)
              return fail(form_text(v, std::size_t(t.number)) +
                          ": nothing makes it wait until step " + std::to_string(before) +
                          " has been posted, which has a peer, " + rank_text(peer) +
                          ", in common with it");
          }
          before = t.number;
        }
      }
      for (const task& t : mine)
        for (index r = 0; r < t.what->rounds; ++r) {
          const index peer = instances_[std::size_t(t.first + r * t.segments)].peer;
          latest_[std::size_t(peer) * 2] = latest_[std::size_t(peer) * 2 + 1] = none;
        }
    }
    return true;
  }

  // --- races

  // clock(t, i)[u]: how many instances of step u are surely done when instance i of step t starts.
  // Dependencies are all of the kind "the first k instances of u are done", so these numbers say
  // everything about order.
  index* clock(const task& t, index i) {
    return clocks_.data() + std::size_t(t.first - clock_base_ + i) * clock_width_;
  }

  bool check_races() {
    for (index v = 0; v < p_; ++v) {
      const std::span<task> mine = tasks_of(v);
      if (mine.empty()) continue;
      clock_base_ = mine.front().first;
      clock_width_ = mine.size();
      const task& last = mine.back();
      clocks_.assign(std::size_t(last.first + last.total - clock_base_) * clock_width_, 0);
      for (const task& t : mine) set_clocks(t, mine);
      const unsigned places = max_buffers;
      const std::size_t units = std::size_t(case_.size.units);
      writers_.assign(places * units, none);
      readers_.assign(places * units, none);
      reads_.clear();
      for (const task& t : mine)
        for (index i = 0; i < t.total; ++i)
          if (!check_races_of(t, i)) return false;
    }
    return true;
  }

  void set_clocks(const task& t, std::span<const task> mine) {
    const bool message = t.what->kind == step_kind::send || t.what->kind == step_kind::receive;
    const auto waits = dependencies_of(t);
    const auto join = [&](index* into, const index* from) {
      for (std::size_t u = 0; u < clock_width_; ++u) into[u] = std::max(into[u], from[u]);
    };
    for (index i = 0; i < t.total; ++i) {
      index* now = clock(t, i);
      if (i > 0) std::copy_n(clock(t, i - 1), clock_width_, now);
      for (const dependency& d : waits) {
        if (d.lag == dependency::in_turn) continue;  // orders large messages only
        const task& other = mine[std::size_t(d.step)];
        const auto awaited = index(instances_awaited(d, i / t.segments, i % t.segments, t.segments,
                                                     other.what->rounds, other.total));
        if (awaited == 0) continue;
        // What awaited instances waited for is done as well.
        join(now, clock(other, awaited - 1));
        if (d.lag != dependency::posted) now[other.number] = std::max(now[other.number], awaited);
      }
      // Local instances run one after the other; messages are only posted so.
      if (!message) now[t.number] = i;
    }
  }

  // Instances are looked at in the order of the steps, in which they could run. So it is enough to
  // compare each with the last writer of each unit and with the readers since.
  bool check_races_of(const task& t, index i) {
    const step& s = *t.what;
    const instance& x = instances_[std::size_t(t.first + i)];
    const std::size_t from = place(t.rank, s.from), to = place(t.rank, s.to);
    if (s.kind == step_kind::copy && from == to && x.from == x.begin) return true;
    const bool from_read = s.kind != step_kind::receive, to_written = s.kind != step_kind::send;
    const bool local = s.kind == step_kind::copy || s.kind == step_kind::reduce;
    for (index u = x.begin; u < x.end; ++u) {
      if (from_read && !read_after_write(t, i, from, local ? x.from + u - x.begin : u))
        return false;
      if (to_written && !write_after_all(t, i, to, u)) return false;
    }
    return true;
  }
  std::size_t place(index v, buffer b) const {
    return b == buffer::input && aliased(v) ? std::size_t(buffer::output) : std::size_t(b);
  }
  bool ordered_before(index earlier, const task& t, index i) {
    const task& e = tasks_[std::size_t(instances_[std::size_t(earlier)].owner)];
    return clock(t, i)[e.number] > earlier - e.first;
  }
  bool race(const task& t, index i, index earlier, index unit) {
    return fail("race on unit " + std::to_string(unit) + ": " + instance_text(t.first + i) +
                " may run before the end of " + instance_text(earlier));
  }
  bool read_after_write(const task& t, index i, std::size_t where, index unit) {
    const std::size_t cell = where * std::size_t(case_.size.units) + std::size_t(unit);
    const index writer = writers_[cell];
    if (writer != none && !ordered_before(writer, t, i)) return race(t, i, writer, unit);
    // Of one step's reads the last one counts: it is done when all are, in terms of clocks.
    index& head = readers_[cell];
    if (head != none && instances_[std::size_t(reads_[std::size_t(head)].first)].owner ==
                            instances_[std::size_t(t.first)].owner)
      reads_[std::size_t(head)].first = t.first + i;
    else {
      reads_.push_back({t.first + i, head});
      head = index(reads_.size()) - 1;
    }
    return true;
  }
  bool write_after_all(const task& t, index i, std::size_t where, index unit) {
    const std::size_t cell = where * std::size_t(case_.size.units) + std::size_t(unit);
    const index self = t.first + i, writer = writers_[cell];
    if (writer != none && !ordered_before(writer, t, i)) return race(t, i, writer, unit);
    for (index r = readers_[cell]; r != none; r = reads_[std::size_t(r)].second) {
      const index reader = reads_[std::size_t(r)].first;
      if (reader != self && !ordered_before(reader, t, i)) return race(t, i, reader, unit);
    }
    writers_[cell] = self;
    readers_[cell] = none;
    return true;
  }

  // --- playing

  bool play_all() {
    put_data();
    return play(max_in_flight, true) &&
           (case_.what == promise::all_arrive ? check_arrival() : check_data()) &&
           (!case_.prove_ending || play(1, false));
  }

  bool play(index window, bool with_data) {
    moves_data_ = with_data;
    if (with_data) met_.assign(instances_.size(), none);
    failed_ = false;
    free_.assign(std::size_t(p_) * 2, window);
    starved_.resize(std::size_t(p_) * 2);
    for (auto& s : starved_) s.clear();
    pairs_.assign(std::size_t(p_) * std::size_t(p_), {none, none});
    queue_.assign(tasks_.size() + 1, 0);
    queue_begin_ = queue_end_ = 0;
    unfinished_ = tasks_.size();
    for (task& t : tasks_) {
      t.next = t.done = 0;
      t.late = 0;
      t.queued = false;
    }
    for (index t = 0; t < index(tasks_.size()); ++t) enqueue(t);
    while (queue_begin_ != queue_end_ && !failed_) {
      const index t = queue_[queue_begin_];
      if (++queue_begin_ == queue_.size()) queue_begin_ = 0;
      tasks_[std::size_t(t)].queued = false;
      advance(t);
    }
    if (failed_) return false;
    return unfinished_ == 0 || explain_hang(window);
  }

  void enqueue(index t) {
    if (tasks_[std::size_t(t)].queued) return;
    tasks_[std::size_t(t)].queued = true;
    queue_[queue_end_] = t;
    if (++queue_end_ == queue_.size()) queue_end_ = 0;
  }

  // How many instances may have started by now.
  index limit(const task& t) const {
    index most = t.total;
    const index base = first_task_[std::size_t(t.rank)];
    for (const dependency& d : dependencies_of(t)) {
      const task& other = tasks_[std::size_t(base + d.step)];
      if (other.done == other.total) continue;
      if (d.lag == dependency::posted) {
        if (other.next < other.total) return 0;
      } else if (d.lag == dependency::all) {
        return 0;
      } else {
        // instances_awaited() solved for the instance. Waiting in turn is proved to end for large
        // messages; for others there is less to wait for.
        most = std::min(most, other.done + std::max(d.lag, 0) * t.segments);
      }
    }
    return most;
  }

  void advance(index number) {
    task& t = tasks_[std::size_t(number)];
    const index end = limit(t);
    const index done_before = t.done;
    const bool posted_before = t.next == t.total;
    if (t.what->kind == step_kind::reduce || t.what->kind == step_kind::copy) {
      for (; t.next < end; ++t.next)
        if (moves_data_ && !work_locally(t, t.first + t.next)) return;
      if (t.next == t.total && t.done != t.total) --unfinished_;
      t.done = t.next;
    } else {
      // Steps take turns, one message each.
      const bool sends = t.what->kind == step_kind::send;
      const std::size_t slot = std::size_t(t.rank) * 2 + (sends ? 1 : 0);
      bool my_turn = true;
      while (t.next < end && t.next - t.done < t.what->window) {
        const index i = t.first + t.next;
        if (!instances_[std::size_t(i)].empty()) {
          if (!my_turn) {
            enqueue(number);
            break;
          }
          my_turn = false;
          const bool has_one = std::popcount(t.late) != t.next - t.done;
          if (free_[slot] <= 0 && has_one) {
            starved_[slot].push_back(number);
            break;
          }
          --free_[slot];
          ++t.next;
          post(i, sends);
          if (failed_) return;
        } else {
          ++t.next;
          mark_done(t, i);
        }
      }
      wake_starved(slot);
    }
    if (t.done != done_before || (t.next == t.total && !posted_before)) tell(t);
  }

  void mark_done(task& t, index i) {
    const index ahead = i - t.first - t.done;
    t.late |= std::uint64_t{1} << ahead;
    const int ended = std::countr_one(t.late);
    t.done += ended;
    t.late = ended == 64 ? 0 : t.late >> ended;
    if (ended > 0 && t.done == t.total) --unfinished_;
  }

  // Those that wait for the task, and itself, may be able to go on.
  void tell(const task& t) {
    const index base = first_task_[std::size_t(t.rank)];
    for (const index s : schedules_[std::size_t(t.rank)].successors_of(*t.what)) enqueue(base + s);
    if (t.next < t.total) enqueue(base + t.number);
  }

  void wake_starved(std::size_t slot) {
    if (free_[slot] <= 0 || starved_[slot].empty()) return;
    enqueue(starved_[slot].front());
    starved_[slot].pop_front();
  }

  struct pair_queue {
    index head;
    index tail;
  };

  void post(index i, bool sends) {
    instance& x = instances_[std::size_t(i)];
    const index rank = tasks_[std::size_t(x.owner)].rank;
    pair_queue& q = sends ? pairs_[std::size_t(rank) * std::size_t(p_) + std::size_t(x.peer)]
                          : pairs_[std::size_t(x.peer) * std::size_t(p_) + std::size_t(rank)];
    const bool other_waits =
        q.head != none && (tasks_[std::size_t(instances_[std::size_t(q.head)].owner)].what->kind ==
                           step_kind::send) != sends;
    if (!other_waits) {
      x.next = none;
      if (q.head == none)
        q.head = i;
      else
        instances_[std::size_t(q.tail)].next = i;
      q.tail = i;
      return;
    }
    const index other = q.head;
    q.head = instances_[std::size_t(other)].next;
    deliver(sends ? i : other, sends ? other : i);
  }

  void deliver(index send, index receive) {
    const instance &from = instances_[std::size_t(send)], &to = instances_[std::size_t(receive)];
    if (from.end - from.begin != to.end - to.begin) {
      failed_ = true;
      fail(instance_text(receive) + " is matched by " + instance_text(send) +
           ": expected equal lengths");
      return;
    }
    if (moves_data_) {
      move_data(send, receive);
      met_[std::size_t(receive)] = send;
    }
    for (const index i : {send, receive}) {
      task& t = tasks_[std::size_t(instances_[std::size_t(i)].owner)];
      const index done_before = t.done;
      mark_done(t, i);
      if (t.done != done_before)
        tell(t);
      else if (t.next < t.total)
        enqueue(instances_[std::size_t(i)].owner);
      const std::size_t slot = std::size_t(t.rank) * 2 + (i == send ? 1 : 0);
      ++free_[slot];
      wake_starved(slot);
    }
  }

  bool explain_hang(index window) {
    std::string text = "the ranks wait for ever, with synchronous sends and windows of " +
                       std::to_string(window) + ": ";
    int told = 0;
    const auto say = [&](const std::string& what) {
      if (told++ < 4) text += (told > 1 ? "; " : "") + what;
    };
    for (const pair_queue& q : pairs_)
      for (index i = q.head; i != none; i = instances_[std::size_t(i)].next) {
        const bool sends =
            tasks_[std::size_t(instances_[std::size_t(i)].owner)].what->kind == step_kind::send;
        say(instance_text(i) + (sends ? " meets no receive" : " meets no send"));
      }
    for (const task& t : tasks_)
      if (t.next < t.total) say(instance_text(t.first + t.next) + " does not start");
    return fail(text);
  }

  // --- data

  symbol* memory(index rank, buffer b) {
    return data_.data() +
           (std::size_t(rank) * max_buffers + place(rank, b)) * std::size_t(case_.size.units);
  }

  void put_data() {
    data_.assign(std::size_t(p_) * max_buffers * std::size_t(case_.size.units), {});
    // Expression 1 + v: the contribution of virtual rank v.
    operands_.assign(std::size_t(p_) + 1, {0, 0});
    known_.clear();
    judged_.clear();
    for (index v = 0; v < p_; ++v) {
      const buffer b = case_.what == promise::root_to_all ? buffer::output : buffer::input;
      extent mine{0, size_of(v, b).units};
      switch (case_.what) {
        case promise::root_to_all:
        case promise::root_to_blocks:
          if (v != 0) continue;
          break;
        case promise::blocks_to_root:
        case promise::blocks_to_all:
        case promise::all_arrive:
          mine = block_of(v, b, v);
          break;
        default:
          break;
      }
      symbol* s = memory(v, b);
      for (std::int64_t u = mine.begin; u < mine.end; ++u)
        s[u] = {std::uint32_t(v) + 1, std::uint32_t(u)};
    }
  }

  bool is_written(const symbol& s, index i, buffer b, index unit) {
    if (s.expression != 0) return true;
    failed_ = true;
    return fail(instance_text(i) + " reads unit " + std::to_string(unit) + " of " + buffer_text(b) +
                ", which nobody has written");
  }

  void move_data(index send, index receive) {
    const instance &from = instances_[std::size_t(send)], &to = instances_[std::size_t(receive)];
    const task &sender = tasks_[std::size_t(from.owner)], &receiver = tasks_[std::size_t(to.owner)];
    const symbol* source = memory(sender.rank, sender.what->from) + from.begin;
    symbol* target = memory(receiver.rank, receiver.what->to) + to.begin;
    for (index u = 0; u < from.end - from.begin; ++u) {
      if (!is_written(source[u], send, sender.what->from, from.begin + u)) return;
      target[u] = source[u];
    }
  }

  bool work_locally(const task& t, index i) {
    const step& s = *t.what;
    const instance& x = instances_[std::size_t(i)];
    const symbol* from = memory(t.rank, s.from);
    symbol* to = memory(t.rank, s.to);
    if (from == to && x.from == x.begin) return true;
    for (index u = x.begin; u < x.end; ++u) {
      const symbol& left = from[x.from + u - x.begin];
      if (!is_written(left, i, s.from, x.from + u - x.begin)) return false;
      if (s.kind == step_kind::copy) {
        to[u] = left;
        continue;
      }
      if (!is_written(to[u], i, s.to, u)) return false;
      if (left.unit != to[u].unit) {
        failed_ = true;
        return fail(instance_text(i) + " combines unit " + std::to_string(left.unit) +
                    " with unit " + std::to_string(to[u].unit) + " at unit " + std::to_string(u));
      }
      to[u].expression = combined(left.expression, to[u].expression);
    }
    return true;
  }

  // The expression "left op right": equal operands, equal number.
  std::uint32_t combined(std::uint32_t left, std::uint32_t right) {
    const std::uint64_t key = std::uint64_t{left} << 32 | right;
    if (key == last_key_ && !known_.empty()) return last_value_;
    const auto [found, is_new] = known_.try_emplace(key, std::uint32_t(operands_.size()));
    if (is_new) operands_.push_back({left, right});
    last_key_ = key;
    last_value_ = found->second;
    return found->second;
  }

  bool check_data() {
    for (index v = 0; v < p_; ++v) {
      if (case_.what == promise::reduce_to_root && v != first_root_) continue;
      const extent mine = output_of(v);
      if (!traits_.blocks || case_.what == promise::reduce_to_blocks) {
        if (!check_units(v, mine, none, mine.begin)) return false;
        continue;
      }
      for (index k = 0; k < p_; ++k) {
        const extent e = block_of(v, buffer::output, k);
        if (e.begin < mine.begin || e.end > mine.end) continue;
        const bool from_root = case_.what == promise::root_to_blocks;
        const index owner = from_root ? 0 : k;
        const bool transposed = case_.what == promise::blocks_to_blocks;
        const extent source = block_of(owner, buffer::input, transposed ? v : k);
        if (!check_units(v, e, owner, source.begin)) return false;
      }
    }
    return true;
  }

  // Units `e` of rank v's output: input of `owner` from unit `source` on; no owner: reductions, and
  // the root's message.
  bool check_units(index v, const extent& e, index owner, std::int64_t source) {
    const symbol* mine = memory(v, buffer::output);
    const symbol* first = memory(0, buffer::output);
    for (std::int64_t u = e.begin; u < e.end; ++u) {
      const symbol& s = mine[u];
      const auto where = [&] {
        return rank_text(v) + " unit " + std::to_string(u) + " of output: ";
      };
      if (s.expression == 0) return fail(where() + "never written");
      if (s.unit != std::uint32_t(source + u - e.begin))
        return fail(where() + "holds unit " + std::to_string(s.unit));
      if (owner != none && s.expression != std::uint32_t(owner) + 1)
        return fail(where() + "expected input of " + rank_text(owner) + ", found " +
                    expression_text(s.expression));
      if (!traits_.reduces) continue;
      const index last = case_.what == promise::prefix          ? v
                         : case_.what == promise::prefix_before ? v - 1
                                                                : p_ - 1;
      if (first_contributions(s.expression) != last + 1)
        return fail(where() + "expected the contributions of ranks 0 to " + std::to_string(last) +
                    " once each" + (case_.commutative ? "" : " and in rank order") + ", found " +
                    expression_text(s.expression));
      if (case_.what == promise::reduce_to_all && s != first[u])
        return fail(where() + "expected the same expression as on " + rank_text(0) + ", " +
                    expression_text(first[u].expression) + ", found " +
                    expression_text(s.expression));
    }
    return true;
  }

  // Who has surely begun when a rank ends: what its instances wait for, and what the senders of its
  // messages waited for. Found in rounds until nothing changes; schedules of barriers are short.
  bool check_arrival() {
    const std::size_t words = (std::size_t(p_) + 63) / 64;
    arrived_.assign(instances_.size() * words, 0);
    const auto of = [&](index i) { return arrived_.data() + std::size_t(i) * words; };
    bool changed = true;
    const auto join = [&](index into, const std::uint64_t* from) {
      for (std::size_t w = 0; w < words; ++w) {
        changed = changed || (from[w] & ~of(into)[w]) != 0;
        of(into)[w] |= from[w];
      }
    };
    while (changed) {
      changed = false;
      for (const task& t : tasks_)
        for (index i = 0; i < t.total; ++i) {
          const index self = t.first + i;
          const auto mine = std::uint64_t{1} << (t.rank % 64);
          changed = changed || (of(self)[std::size_t(t.rank) / 64] & mine) == 0;
          of(self)[std::size_t(t.rank) / 64] |= mine;
          if (t.what->kind == step_kind::receive && met_[std::size_t(self)] != none)
            join(self, of(met_[std::size_t(self)]));
          for (const dependency& d : dependencies_of(t)) {
            if (d.lag == dependency::posted) continue;
            const task& other = tasks_[std::size_t(first_task_[std::size_t(t.rank)] + d.step)];
            const auto awaited = index(instances_awaited(
                d, i / t.segments, i % t.segments, t.segments, other.what->rounds, other.total));
            for (index k = 0; k < awaited; ++k) join(self, of(other.first + k));
          }
        }
    }
    for (index v = 0; v < p_; ++v) {
      std::vector<std::uint64_t> all(words, 0);
      all[std::size_t(v) / 64] |= std::uint64_t{1} << (v % 64);
      for (const task& t : tasks_of(v))
        for (index i = 0; i < t.total; ++i)
          for (std::size_t w = 0; w < words; ++w) all[w] |= of(t.first + i)[w];
      for (index other = 0; other < p_; ++other)
        if (!(all[std::size_t(other) / 64] >> (other % 64) & 1))
          return fail(rank_text(v) + " may end before " + rank_text(other) + " has begun");
    }
    return true;
  }

  // Calls visit(contribution's virtual rank) from left to right until it says no.
  template <class Visit>
  bool walk(std::uint32_t expression, Visit visit) const {
    std::vector<std::uint32_t> open{expression};
    while (!open.empty()) {
      const std::uint32_t e = open.back();
      open.pop_back();
      if (operands_[e].first == 0) {
        if (!visit(index(e) - 1)) return false;
      } else {
        open.push_back(operands_[e].second);
        open.push_back(operands_[e].first);
      }
    }
    return true;
  }
  // n if the expression has the contributions of ranks 0 to n-1 once each, and in this order if the
  // operation does not commute; otherwise none.
  index first_contributions(std::uint32_t expression) {
    if (const auto known = judged_.find(expression); known != judged_.end()) return known->second;
    std::vector<bool> seen(std::size_t(p_), false);
    index count = 0, largest = -1;
    const bool each_once = walk(expression, [&](index v) {
      if (seen[std::size_t(v)] || (!case_.commutative && v != count)) return false;
      seen[std::size_t(v)] = true;
      ++count;
      largest = std::max(largest, v);
      return true;
    });
    return judged_[expression] = each_once && largest + 1 == count ? count : none;
  }
  std::string expression_text(std::uint32_t expression) const {
    std::string text = "the contributions of ranks";
    index count = 0;
    walk(expression, [&](index v) {
      text += ' ' + std::to_string(physical(v));
      return ++count < 2 * p_;
    });
    return text + " in this order";
  }

  std::span<const schedule> schedules_;
  check_case case_;
  check_result result_;
  promise_traits traits_{};
  index p_ = 0;
  index rotation_ = 0;          // physical rank of virtual rank 0
  index first_root_ = 0;        // virtual rank with the root's memory
  std::vector<extent> tables_;  // see place_blocks
  std::vector<task> tasks_;
  std::vector<index> first_task_;  // by virtual rank, and the end
  std::vector<instance> instances_;
  std::vector<index> latest_;

  std::vector<index> clocks_;
  index clock_base_ = 0;
  std::size_t clock_width_ = 0;
  std::vector<index> writers_, readers_;        // per memory and unit
  std::vector<std::pair<index, index>> reads_;  // instance, next reader of the unit

  bool moves_data_ = false;
  bool failed_ = false;
  std::vector<index> free_;
  std::vector<std::deque<index>> starved_;
  std::vector<pair_queue> pairs_;
  std::vector<index> queue_;
  std::size_t queue_begin_ = 0, queue_end_ = 0;
  std::size_t unfinished_ = 0;

  std::vector<symbol> data_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> operands_;  // of each expression
  std::unordered_map<std::uint64_t, std::uint32_t> known_;
  std::unordered_map<std::uint32_t, index> judged_;
  std::vector<index> met_;              // per receive: the send that it met
  std::vector<std::uint64_t> arrived_;  // per instance: a bit per rank
  std::uint64_t last_key_ = 0;
  std::uint32_t last_value_ = 0;
};

}  // namespace railpass
