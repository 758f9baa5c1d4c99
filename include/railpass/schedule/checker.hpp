// SPDX-License-Identifier: BSL-1.0
//
// Proves that the schedules of all ranks together do what their collective promises. No MPI, no
// data: every unit of memory holds a symbol instead of a value.
//
// What is proved, for one number of ranks and one size
//   messages  of an ordered pair of ranks are posted in one order only, whatever the timing, the
//             k-th send meets the k-th receive, and both are equally long.
//   data      broadcast: every unit of every rank's output is the root's. all_reduce: every unit of
//             the result has every contribution once, in rank order if the operation does not
//             commute, and is the same expression, operand for operand, on all ranks: thus the same
//             bits, though rounding is not associative. The input is not written (unless it is the
//             output), and nothing is read before it has been written.
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
// Roots: schedules are written in virtual ranks, and the executor renames them one to one
// (physical_rank). What is proved for one root is thereby proved for all; the root of a check only
// serves to name ranks.
#pragma once

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

/// What a collective promises.
enum class promise : std::uint8_t {
  root_to_all,   ///< every output is the root's output
  reduce_to_all  ///< every output is the reduction of all inputs
};

struct check_case {
  promise what = promise::root_to_all;
  std::int32_t root = 0;    ///< physical rank of virtual rank 0; for messages only
  bool commutative = true;  ///< reductions: any order of operands will do
  bool in_place = false;    ///< input and output are the same memory
  message_size size{};
  bool prove_ending = true;  ///< false where it is known: it does not depend on where data are
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
        x.rounds * segments_per_round(x, size.segment_units(s.segment_bytes), size.units);
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

  index physical(index v) const { return physical_rank(v, case_.root, p_); }
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
    if (b.parts < 1 || b.count < 1 || b.count > b.parts)
      return wrong("takes " + std::to_string(b.count) + " of " + std::to_string(b.parts) +
                   " blocks");
    for (index r = 0; r < x.rounds; ++r) {
      if (wrap(b.first + std::int64_t{r} * b.stride, b.parts) + b.count > b.parts)
        return wrong("the blocks of round " + std::to_string(r) +
                     " go beyond the end of the message");
      if (message && peer_of(x, r, p_) == v)
        return wrong("the peer of round " + std::to_string(r) + " is the rank itself");
    }
    if (x.kind != step_kind::send && x.to == buffer::input) return wrong("writes the input");
    if (!message && x.from == x.to) return wrong("source and target are the same buffer");
    for (const buffer used : {x.from, x.to})
      if (used >= buffer::scratch0 && !(s.scratch_mask >> unsigned(used) & 1))
        return wrong(buffer_text(used) + " is not in the schedule's scratch_mask");
    for (const dependency& d : s.dependencies_of(x)) {
      if (d.step < 0 || std::size_t(d.step) >= number)
        return wrong("waits for step " + std::to_string(d.step) + ", expected an earlier one");
      const step& other = s.steps[std::size_t(d.step)];
      const std::int64_t segment = case_.size.segment_units(s.segment_bytes);
      if ((d.lag >= 0 || d.lag == dependency::in_turn) &&
          segments_per_round(x, segment, case_.size.units) !=
              segments_per_round(other, segment, case_.size.units))
        return wrong("waits for single segments of step " + std::to_string(d.step) +
                     ", which has another number of them");
      const auto told = s.successors_of(other);
      if (std::find(told.begin(), told.end(), index(number)) == told.end())
        return wrong("is not among the successors of step " + std::to_string(d.step) +
                     ", which it waits for");
    }
    return true;
  }

  // --- instances

  bool expand() {
    tasks_.clear();
    instances_.clear();
    first_task_.assign(1, 0);
    const index units = index(case_.size.units);
    const std::int64_t segment_units = case_.size.segment_units(schedules_[0].segment_bytes);
    for (index v = 0; v < p_; ++v) {
      const schedule& s = schedules_[std::size_t(v)];
      for (std::size_t i = 0; i < s.steps.size(); ++i) {
        const step& x = s.steps[i];
        task t{.what = &x, .rank = v, .number = index(i), .first = index(instances_.size())};
        t.segments = index(segments_per_round(x, segment_units, units));
        t.total = x.rounds * t.segments;
        const bool message = x.kind == step_kind::send || x.kind == step_kind::receive;
        for (index r = 0; r < x.rounds; ++r) {
          const extent whole = round_extent(x.blocks, r, units);
          const index peer = message ? peer_of(x, r, p_) : v;
          for (index k = 0; k < t.segments; ++k) {
            const auto begin =
                x.segmented ? std::min(whole.end, whole.begin + k * segment_units) : whole.begin;
            const auto end = x.segmented ? std::min(whole.end, begin + segment_units) : whole.end;
            instances_.push_back({.begin = index(begin),
                                  .end = index(end),
                                  .peer = peer,
                                  .owner = index(tasks_.size())});
            if (begin != end) ++result_.steps;
          }
        }
        tasks_.push_back(t);
      }
      first_task_.push_back(index(tasks_.size()));
    }
    return true;
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
      const unsigned places = case_.in_place ? max_buffers - 1 : max_buffers;
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
    if (s.kind == step_kind::copy && place(s.from) == place(s.to)) return true;
    const bool from_read = s.kind != step_kind::receive, to_written = s.kind != step_kind::send;
    for (index u = x.begin; u < x.end; ++u) {
      if (from_read && !read_after_write(t, i, place(s.from), u)) return false;
      if (to_written && !write_after_all(t, i, place(s.to), u)) return false;
    }
    return true;
  }
  std::size_t place(buffer b) const {
    if (!case_.in_place) return std::size_t(b);
    return b == buffer::input ? 0 : std::size_t(b) - 1;
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
    return play(max_in_flight, true) && check_data() && (!case_.prove_ending || play(1, false));
  }

  bool play(index window, bool with_data) {
    moves_data_ = with_data;
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
      while (t.next < end && t.next - t.done < max_in_flight) {
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
    if (moves_data_) move_data(send, receive);
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
           (std::size_t(rank) * max_buffers + place(b)) * std::size_t(case_.size.units);
  }

  void put_data() {
    const std::size_t units = std::size_t(case_.size.units);
    data_.assign(std::size_t(p_) * max_buffers * units, {});
    // Expression 1 + v: the contribution of virtual rank v.
    operands_.assign(std::size_t(p_) + 1, {0, 0});
    known_.clear();
    judged_.clear();
    for (index v = 0; v < p_; ++v) {
      if (case_.what == promise::root_to_all && v != 0) break;
      const buffer b = case_.what == promise::root_to_all ? buffer::output : buffer::input;
      symbol* s = memory(v, b);
      for (std::size_t u = 0; u < units; ++u) s[u] = {std::uint32_t(v) + 1, std::uint32_t(u)};
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
    if (from == to) return true;
    for (index u = x.begin; u < x.end; ++u) {
      if (!is_written(from[u], i, s.from, u)) return false;
      if (s.kind == step_kind::copy) {
        to[u] = from[u];
        continue;
      }
      if (!is_written(to[u], i, s.to, u)) return false;
      if (from[u].unit != to[u].unit) {
        failed_ = true;
        return fail(instance_text(i) + " combines unit " + std::to_string(from[u].unit) +
                    " with unit " + std::to_string(to[u].unit) + " at unit " + std::to_string(u));
      }
      to[u].expression = combined(from[u].expression, to[u].expression);
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
    const index units = index(case_.size.units);
    const symbol* first = memory(0, buffer::output);
    for (index v = 0; v < p_; ++v) {
      const symbol* mine = memory(v, buffer::output);
      for (index u = 0; u < units; ++u) {
        const symbol& s = mine[u];
        const auto where = [&] {
          return rank_text(v) + " unit " + std::to_string(u) + " of output: ";
        };
        if (s.expression == 0) return fail(where() + "never written");
        if (s.unit != std::uint32_t(u))
          return fail(where() + "holds unit " + std::to_string(s.unit));
        if (case_.what == promise::root_to_all) continue;  // there is but one expression
        if (!is_right(s.expression))
          return fail(where() + "expected every rank's contribution once" +
                      (case_.commutative ? "" : " and in rank order") + ", found " +
                      expression_text(s.expression));
        if (s != first[u])
          return fail(where() + "expected the same expression as on " + rank_text(0) + ", " +
                      expression_text(first[u].expression) + ", found " +
                      expression_text(s.expression));
      }
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
  bool is_right(std::uint32_t expression) {
    if (const auto known = judged_.find(expression); known != judged_.end()) return known->second;
    std::vector<bool> seen(std::size_t(p_), false);
    index count = 0;
    const bool each_once = walk(expression, [&](index v) {
      if (seen[std::size_t(v)] || (!case_.commutative && v != count)) return false;
      seen[std::size_t(v)] = true;
      ++count;
      return true;
    });
    return judged_[expression] = each_once && count == p_;
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
  index p_ = 0;
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
  std::unordered_map<std::uint32_t, bool> judged_;
  std::uint64_t last_key_ = 0;
  std::uint32_t last_value_ = 0;
};

}  // namespace railpass
