// SPDX-License-Identifier: BSL-1.0
//
// Plays all ranks at once: who meets whom, and whether all reach the end.
#pragma once

#include "railpass/schedule/checking/call.hpp"
#include "railpass/schedule/checking/data.hpp"
#include "railpass/schedule/checking/unrolled.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace railpass::checking {

class play {
 public:
  play(checked_call& call, const unrolled& steps) : call_(call), steps_(steps) {}

  // With so many messages of a rank in flight each way; where there are data, they are moved.
  bool run(index window, symbolic_data* data) {
    data_ = data;
    if (data) {
      met_.assign(steps_.instances.size(), none);
      data->begin_phase();
    }
    failed_ = false;
    free_.assign(std::size_t(call_.num_ranks) * 2, window);
    starved_.resize(std::size_t(call_.num_ranks) * 2);
    for (auto& s : starved_) s.clear();
    pairs_.assign(std::size_t(call_.num_ranks) * std::size_t(call_.num_ranks), {none, none});
    tasks_.clear();
    for (const task& t : steps_.tasks) tasks_.push_back({t});
    queue_.assign(tasks_.size() + 1, 0);
    queue_begin_ = queue_end_ = 0;
    behind_.assign(steps_.instances.size(), none);
    unfinished_ = tasks_.size();
    find_publishers();
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

  // By the last play with data, for each receive: the send that it met.
  const std::vector<index>& met() const { return met_; }

 private:
  struct played_task : task {
    index next = 0;  // posted
    index done = 0;
    std::uint64_t late = 0;  // bit k: instance done + k is done
    bool queued = false;
  };
  // Messages that only one end has posted, all of the same end.
  struct pair_queue {
    index head;
    index tail;
  };

  void enqueue(index t) {
    if (tasks_[std::size_t(t)].queued) return;
    tasks_[std::size_t(t)].queued = true;
    queue_[queue_end_] = t;
    if (++queue_end_ == queue_.size()) queue_end_ = 0;
  }

  // How many instances may have started by now.
  index limit(const played_task& t) const {
    index most = t.total;
    const index base = steps_.first_task[std::size_t(t.rank)];
    for (const dependency& d : steps_.dependencies_of(t)) {
      const played_task& other = tasks_[std::size_t(base + d.step)];
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
    played_task& t = tasks_[std::size_t(number)];
    const index end = limit(t);
    const index done_before = t.done;
    const bool posted_before = t.next == t.total;
    if (!is_message(t.what->kind)) {
      for (; t.next < end && is_shown(t, number); ++t.next)
        if (!do_at_once(t, t.first + t.next, number)) {
          failed_ = true;
          return;
        }
      if (t.next == t.total && t.done != t.total) --unfinished_;
      t.done = t.next;
    } else {
      // Steps take turns, one message each.
      const bool sends = t.what->kind == step_kind::send;
      const std::size_t slot = std::size_t(t.rank) * 2 + (sends ? 1 : 0);
      bool my_turn = true;
      while (t.next < end && t.next - t.done < t.what->window) {
        const index i = t.first + t.next;
        if (!steps_.instances[std::size_t(i)].empty()) {
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

  // --- shared memory

  // Whether what the next instance of a step looks for is there.
  bool is_shown(const played_task& t, index number) const {
    if (!looks(t.what->kind) || steps_.instances[std::size_t(t.first + t.next)].empty())
      return true;
    const index from = publisher_[std::size_t(number)];
    return from != none && tasks_[std::size_t(from)].next > t.next;
  }
  bool do_at_once(const played_task& t, index i, index number) {
    if (!is_shared(t.what->kind)) return !data_ || data_->work_locally(t, i);
    if (shows(t.what->kind)) {
      for (const index reader : readers_[std::size_t(number)]) enqueue(reader);
      return !data_ || t.what->kind != step_kind::publish || data_->publish(i);
    }
    const index from = publisher_[std::size_t(number)];
    const instance& mine = steps_.instances[std::size_t(i)];
    if (from == none) return true;  // an empty one
    const index other = steps_.tasks[std::size_t(from)].first + t.next;
    const instance& shown = steps_.instances[std::size_t(other)];
    if (mine.end - mine.begin != shown.end - shown.begin)
      return call_.fail(steps_.instance_text(i) + " looks at " + steps_.instance_text(other) +
                        ": expected equal lengths");
    if (!data_ || mine.empty()) return true;
    met_[std::size_t(i)] = other;
    return data_->look(i, other);
  }
  void find_publishers() {
    publisher_.assign(tasks_.size(), none);
    readers_.assign(tasks_.size(), {});
    for (index reader = 0; reader < index(tasks_.size()); ++reader) {
      const step& x = *tasks_[std::size_t(reader)].what;
      if (!looks(x.kind)) continue;
      for (index t = steps_.first_task[std::size_t(x.peer)];
           t < steps_.first_task[std::size_t(x.peer) + 1]; ++t)
        if (finds(x, tasks_[std::size_t(reader)].rank, *tasks_[std::size_t(t)].what)) {
          publisher_[std::size_t(reader)] = t;
          readers_[std::size_t(t)].push_back(reader);
        }
    }
  }

  void mark_done(played_task& t, index i) {
    const index ahead = i - t.first - t.done;
    t.late |= std::uint64_t{1} << ahead;
    const int ended = std::countr_one(t.late);
    t.done += ended;
    t.late = ended == 64 ? 0 : t.late >> ended;
    if (ended > 0 && t.done == t.total) --unfinished_;
  }

  // Those that wait for the task, and itself, may be able to go on.
  void tell(const played_task& t) {
    const index base = steps_.first_task[std::size_t(t.rank)];
    for (const index s : call_.schedules[std::size_t(t.rank)].successors_of(*t.what))
      enqueue(base + s);
    if (t.next < t.total) enqueue(base + t.number);
  }

  void wake_starved(std::size_t slot) {
    if (free_[slot] <= 0 || starved_[slot].empty()) return;
    enqueue(starved_[slot].front());
    starved_[slot].pop_front();
  }

  void post(index i, bool sends) {
    const instance& x = steps_.instances[std::size_t(i)];
    const index rank = tasks_[std::size_t(x.owner)].rank;
    pair_queue& q =
        sends ? pairs_[std::size_t(rank) * std::size_t(call_.num_ranks) + std::size_t(x.peer)]
              : pairs_[std::size_t(x.peer) * std::size_t(call_.num_ranks) + std::size_t(rank)];
    const bool other_waits =
        q.head != none &&
        (tasks_[std::size_t(steps_.instances[std::size_t(q.head)].owner)].what->kind ==
         step_kind::send) != sends;
    if (!other_waits) {
      if (q.head == none)
        q.head = i;
      else
        behind_[std::size_t(q.tail)] = i;
      q.tail = i;
      return;
    }
    const index other = q.head;
    q.head = behind_[std::size_t(other)];
    deliver(sends ? i : other, sends ? other : i);
  }

  void deliver(index send, index receive) {
    const instance &from = steps_.instances[std::size_t(send)],
                   &to = steps_.instances[std::size_t(receive)];
    if (from.end - from.begin != to.end - to.begin) {
      failed_ = true;
      call_.fail(steps_.instance_text(receive) + " is matched by " + steps_.instance_text(send) +
                 ": expected equal lengths");
      return;
    }
    if (data_) {
      if (!data_->move(send, receive)) {
        failed_ = true;
        return;
      }
      met_[std::size_t(receive)] = send;
    }
    for (const index i : {send, receive}) {
      played_task& t = tasks_[std::size_t(steps_.instances[std::size_t(i)].owner)];
      const index done_before = t.done;
      mark_done(t, i);
      if (t.done != done_before)
        tell(t);
      else if (t.next < t.total)
        enqueue(steps_.instances[std::size_t(i)].owner);
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
      for (index i = q.head; i != none; i = behind_[std::size_t(i)]) {
        const bool sends = tasks_[std::size_t(steps_.instances[std::size_t(i)].owner)].what->kind ==
                           step_kind::send;
        say(steps_.instance_text(i) +
            (sends ? " has no matching receive" : " has no matching send"));
      }
    for (const played_task& t : tasks_)
      if (t.next < t.total) say(steps_.instance_text(t.first + t.next) + " does not start");
    return call_.fail(text);
  }

  checked_call& call_;
  const unrolled& steps_;
  symbolic_data* data_ = nullptr;
  bool failed_ = false;
  std::vector<played_task> tasks_;
  std::vector<index> free_;
  std::vector<std::deque<index>> starved_;
  std::vector<pair_queue> pairs_;            // of each ordered pair of ranks
  std::vector<index> behind_;                // per instance: the next one in the queue of its pair
  std::vector<index> publisher_;             // per step that looks: the task that shows it
  std::vector<std::vector<index>> readers_;  // per step that shows something
  std::vector<index> queue_;
  std::size_t queue_begin_ = 0, queue_end_ = 0;
  std::size_t unfinished_ = 0;
  std::vector<index> met_;  // per receive: the send that it met
};

}  // namespace railpass::checking
