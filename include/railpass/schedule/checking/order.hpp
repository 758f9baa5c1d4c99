// SPDX-License-Identifier: BSL-1.0
//
// Checks orders that hold for any timing: messages of a pair of ranks, steps that touch the same
// memory, and, for a barrier, each rank's start before any rank's end.
#pragma once

#include "railpass/schedule/checking/call.hpp"
#include "railpass/schedule/checking/unrolled.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass::checking {

class order_checks {
 public:
  order_checks(checked_call& call, const unrolled& steps) : call_(call), steps_(steps) {}

  // Messages of a pair are posted in the order of the steps.
  bool check_posting_order() {
    latest_.assign(std::size_t(call_.num_ranks) * 2, none);
    for (index v = 0; v < call_.num_ranks; ++v) {
      const std::span<const task> mine = steps_.tasks_of(v);
      for (const task& t : mine) {
        if (!is_message(t.what->kind)) continue;
        const bool sends = t.what->kind == step_kind::send;
        for (index r = 0; r < t.what->rounds; ++r) {
          const index peer = steps_.instances[std::size_t(t.first + r * t.segments)].peer;
          index& before = latest_[std::size_t(peer) * 2 + (sends ? 1 : 0)];
          if (before != none && before != t.number) {
            const auto waits = steps_.dependencies_of(t);
            const bool ordered = std::any_of(waits.begin(), waits.end(), [&](const dependency& d) {
              return d.step == before && d.lag < 0 && d.lag != dependency::in_turn;
            });
            if (!ordered)
              return call_.fail(call_.form_text(v, std::size_t(t.number)) +
                                ": may be posted before step " + std::to_string(before) +
                                ", although both have the peer " + call_.rank_text(peer));
          }
          before = t.number;
        }
      }
      for (const task& t : mine)
        for (index r = 0; r < t.what->rounds; ++r) {
          const index peer = steps_.instances[std::size_t(t.first + r * t.segments)].peer;
          latest_[std::size_t(peer) * 2] = latest_[std::size_t(peer) * 2 + 1] = none;
        }
    }
    return true;
  }

  bool check_races() {
    for (index v = 0; v < call_.num_ranks; ++v) {
      const std::span<const task> mine = steps_.tasks_of(v);
      if (mine.empty()) continue;
      find_closed(mine);
      clock_base_ = mine.front().first;
      clock_width_ = mine.size();
      const task& last = mine.back();
      clocks_.assign(std::size_t(last.first + last.total - clock_base_) * clock_width_, 0);
      for (const task& t : mine) set_clocks(t, mine);
      const unsigned buffers = max_buffers;
      const std::size_t units = std::size_t(call_.size.units);
      writers_.assign(buffers * units, none);
      readers_.assign(buffers * units, none);
      reads_.clear();
      for (const task& t : mine)
        for (index i = 0; i < t.total; ++i)
          if (!check_races_of(t, i)) return false;
    }
    return true;
  }

  // For a barrier: the ranks that have certainly started when a rank starts the first phase must be
  // all ranks before the end of the last phase.
  void forget_arrivals() {
    const std::size_t words = arrival_words();
    come_.assign(std::size_t(call_.num_ranks) * words, 0);
    for (index v = 0; v < call_.num_ranks; ++v)
      come_[std::size_t(v) * words + std::size_t(v) / 64] |= std::uint64_t{1} << (v % 64);
  }
  // The ranks that have certainly started when a rank ends this phase, from the dependencies of its
  // instances and of the senders of its messages. `met` maps each receive to its send, and each
  // shared step to the step it saw. Repeats until nothing changes; schedules of barriers are short.
  void note_arrivals(const std::vector<index>& met) {
    const std::size_t words = arrival_words();
    arrived_.assign(steps_.instances.size() * words, 0);
    const auto of = [&](index i) { return arrived_.data() + std::size_t(i) * words; };
    bool changed = true;
    const auto join = [&](std::uint64_t* into, const std::uint64_t* from) {
      for (std::size_t w = 0; w < words; ++w) {
        changed = changed || (from[w] & ~into[w]) != 0;
        into[w] |= from[w];
      }
    };
    while (changed) {
      changed = false;
      for (const task& t : steps_.tasks)
        for (index i = 0; i < t.total; ++i) {
          const index self = t.first + i;
          join(of(self), come_.data() + std::size_t(t.rank) * words);
          if (met[std::size_t(self)] != none) join(of(self), of(met[std::size_t(self)]));
          for (const dependency& d : steps_.dependencies_of(t)) {
            if (d.lag == dependency::posted) continue;
            const task& other =
                steps_.tasks[std::size_t(steps_.first_task[std::size_t(t.rank)] + d.step)];
            const auto awaited = index(instances_awaited(
                d, i / t.segments, i % t.segments, t.segments, other.what->rounds, other.total));
            for (index k = 0; k < awaited; ++k) join(of(self), of(other.first + k));
          }
        }
    }
    for (const task& t : steps_.tasks)
      for (index i = 0; i < t.total; ++i)
        join(come_.data() + std::size_t(t.rank) * words, of(t.first + i));
  }
  bool check_arrivals() {
    const std::size_t words = arrival_words();
    for (index v = 0; v < call_.num_ranks; ++v)
      for (index other = 0; other < call_.num_ranks; ++other)
        if (!(come_[std::size_t(v) * words + std::size_t(other) / 64] >> (other % 64) & 1))
          return call_.fail(call_.rank_text(v) + " may end before " + call_.rank_text(other) +
                            " has begun");
    return true;
  }

 private:
  std::size_t arrival_words() const { return (std::size_t(call_.num_ranks) + 63) / 64; }

  // The steps of a rank that opened memory to a peer, and are certainly over when another step
  // touches memory. That step either sees something that the peer shows after its own copy, or is
  // the target of a later put. For steps with one instance.
  void find_closed(std::span<const task> mine) {
    closed_.assign(mine.size(), {});
    for (const task& t : mine) {
      const step& x = *t.what;
      if (t.total != 1 || steps_.instances[std::size_t(t.first)].empty()) continue;
      if (!looks(x.kind) && x.kind != step_kind::invite) continue;
      const std::span<const task> theirs = steps_.tasks_of(x.peer);
      const auto copies = [&](const task& y, const step& opened) {
        return is_single_copy(y.what->kind) && y.what->peer == t.rank &&
               finds(*y.what, x.peer, opened);
      };
      const auto their_part = std::ranges::find_if(theirs, [&](const task& y) {
        return looks(x.kind) ? finds(x, t.rank, *y.what) : copies(y, x);
      });
      if (their_part == theirs.end()) continue;
      const std::vector<bool> earlier = done_before(*their_part, theirs);
      for (const task& o : mine)
        if (o.total == 1 && opens_memory(o.what->kind) && o.what->peer == x.peer &&
            std::ranges::none_of(theirs, [&](const task& y) {
              return copies(y, *o.what) && !earlier[std::size_t(y.number)];
            }))
          closed_[std::size_t(t.number)].push_back(o.number);
    }
  }
  // By step of a rank: whether the whole step has certainly ended when `t` starts.
  std::vector<bool> done_before(const task& t, std::span<const task> all) const {
    std::vector<bool> done(all.size(), false);
    std::vector<index> open{t.number};
    while (!open.empty()) {
      const task& x = all[std::size_t(open.back())];
      open.pop_back();
      for (const dependency& d : steps_.dependencies_of(x)) {
        const bool single = x.total == 1 && all[std::size_t(d.step)].total == 1;
        if (d.lag != dependency::all && !(d.lag == 0 && single)) continue;
        if (!done[std::size_t(d.step)]) open.push_back(d.step);
        done[std::size_t(d.step)] = true;
      }
    }
    return done;
  }
  bool is_closed_by(const task& t, index opening) const {
    const std::vector<index>& closed = closed_[std::size_t(t.number)];
    return std::ranges::find(closed, opening) != closed.end();
  }

  // clock(t, i)[u]: the number of instances of step u that are certainly done when instance i of
  // step t starts. All dependencies are of the form "the first k instances of u are done", so these
  // numbers describe the order completely.
  index* clock(const task& t, index i) {
    return clocks_.data() + std::size_t(t.first - clock_base_ + i) * clock_width_;
  }

  void set_clocks(const task& t, std::span<const task> mine) {
    const bool message = is_message(t.what->kind);
    const auto waits = steps_.dependencies_of(t);
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
        // The dependencies of awaited instances are done as well.
        join(now, clock(other, awaited - 1));
        // A peer may access opened memory until the end of the call, or until it shows that it has
        // finished.
        if (d.lag != dependency::posted && !opens_memory(other.what->kind))
          now[other.number] = std::max(now[other.number], awaited);
      }
      // Local instances run one after the other; messages are only posted in order.
      if (!message && !opens_memory(t.what->kind)) now[t.number] = i;
      if (looks(t.what->kind))
        for (const index o : closed_[std::size_t(t.number)]) now[o] = 1;
    }
  }

  // Instances are checked in the order of the steps, which is a possible order of execution.
  // Therefore each instance is compared only with the last writer of each unit and later readers.
  bool check_races_of(const task& t, index i) {
    const step& s = *t.what;
    const instance& x = steps_.instances[std::size_t(t.first + i)];
    const std::size_t from = call_.buffer_index(t.rank, s.from),
                      to = call_.buffer_index(t.rank, s.to);
    if (s.kind == step_kind::copy && from == to && x.from == x.begin) return true;
    const bool from_read = reads_memory(s.kind);
    const bool to_written = writes_memory(s.kind), local = is_local(s.kind);
    for (index u = x.begin; u < x.end; ++u) {
      if (from_read && !read_after_write(t, i, from, local ? x.from + u - x.begin : u))
        return false;
      if (to_written && !write_after_all(t, i, to, u)) return false;
    }
    return true;
  }
  bool ordered_before(index earlier, const task& t, index i) {
    const task& e = steps_.tasks[std::size_t(steps_.instances[std::size_t(earlier)].owner)];
    return clock(t, i)[e.number] > earlier - e.first || is_closed_by(t, e.number);
  }
  bool race(const task& t, index i, index earlier, index unit) {
    return call_.fail("race on unit " + std::to_string(unit) + ": " +
                      steps_.instance_text(t.first + i) + " may run before the end of " +
                      steps_.instance_text(earlier));
  }
  bool read_after_write(const task& t, index i, std::size_t where, index unit) {
    const std::size_t cell = where * std::size_t(call_.size.units) + std::size_t(unit);
    const index writer = writers_[cell];
    if (writer != none && !ordered_before(writer, t, i)) return race(t, i, writer, unit);
    // The last read of a step counts, because it is done when all its reads are, in terms of
    // clocks.
    index& head = readers_[cell];
    if (head != none && steps_.instances[std::size_t(reads_[std::size_t(head)].first)].owner ==
                            steps_.instances[std::size_t(t.first)].owner)
      reads_[std::size_t(head)].first = t.first + i;
    else {
      reads_.push_back({t.first + i, head});
      head = index(reads_.size()) - 1;
    }
    return true;
  }
  bool write_after_all(const task& t, index i, std::size_t where, index unit) {
    const std::size_t cell = where * std::size_t(call_.size.units) + std::size_t(unit);
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

  checked_call& call_;
  const unrolled& steps_;
  std::vector<index> latest_;
  std::vector<index> clocks_;
  std::vector<std::vector<index>> closed_;  // of the rank, by step
  index clock_base_ = 0;
  std::size_t clock_width_ = 0;
  std::vector<index> writers_, readers_;        // per memory and unit
  std::vector<std::pair<index, index>> reads_;  // instance, next reader of the unit
  std::vector<std::uint64_t> arrived_, come_;   // per instance, per rank: a bit per rank
};

}  // namespace railpass::checking
