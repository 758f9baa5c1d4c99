// SPDX-License-Identifier: BSL-1.0
//
// Carries the merges of simulated ranks. A rank waits only for what it has to receive.
#pragma once

#include "railpass/select/lockstep/lockstep.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace railpass::test {

class merge_mail {
 public:
  /// The steps to make: those that are due, or those before the communicator ends.
  using which = select::merge_step (select::lockstep::*)() const;

  /// Makes the steps of a rank. False if the rank has to wait for another rank's message.
  bool make_steps(int rank, select::lockstep& ls,
                  const std::function<void(select::merge_outcome)>& consumed,
                  which next = &select::lockstep::due) {
    for (; (ls.*next)() != select::merge_step::none; ++steps_)
      if (!make_step(rank, ls, (ls.*next)(), consumed)) return false;
    return true;
  }

  /// The same on all ranks at once. False if they wait for each other.
  bool make_steps(std::span<select::lockstep> all,
                  const std::function<void(int rank, select::merge_outcome)>& consumed,
                  which next = &select::lockstep::due) {
    for (bool waiting = true; waiting;) {
      waiting = false;
      const std::int64_t before = steps_;
      for (int r = 0; r < int(all.size()); ++r)
        waiting |= !make_steps(
            r, all[std::size_t(r)], [&](select::merge_outcome outcome) { consumed(r, outcome); },
            next);
      if (waiting && steps_ == before) return false;
    }
    return true;
  }

  bool is_empty() const { return mail_.empty(); }  ///< no message is under way

  std::int64_t steps() const { return steps_; }     ///< made so far, on all ranks
  std::size_t longest() const { return longest_; }  ///< message, in words
  /// The most messages that a rank sent in one call, or received in one.
  int busiest() const { return busiest_; }

 private:
  using words = std::vector<std::int32_t>;

  bool make_step(int rank, select::lockstep& ls, select::merge_step step,
                 const std::function<void(select::merge_outcome)>& consumed) {
    const select::tree_position tree = ls.tree();
    const std::int64_t merge = ls.merges();
    switch (step) {
      case select::merge_step::none:
        break;
      case select::merge_step::post:
        ls.post();
        break;
      case select::merge_step::collect: {
        const int from = tree.child(ls.child());
        if (!mail_.contains({merge, from, rank})) return false;
        words message = received(merge, from, rank, ls);
        message.resize(std::max(message.size(), std::size_t(select::merge_report::max_words)),
                       select::merge_report::neutral);
        ls.add(message);
        break;
      }
      case select::merge_step::report:
        if (rank == 0)
          ls.answer();
        else
          send(merge, rank, tree.parent(), ls.report(), ls);
        break;
      case select::merge_step::receive: {
        if (!mail_.contains({merge, tree.parent(), rank})) return false;
        const words message = received(merge, tree.parent(), rank, ls);
        std::copy_n(message.begin(), message.size(), ls.reply_room().begin());
        ls.received();
        break;
      }
      case select::merge_step::deliver: {
        const int to = tree.child(ls.child());
        send(merge, rank, to, ls.reply(), ls);
        break;
      }
      case select::merge_step::consume:
        consumed(ls.consume());
        break;
    }
    return true;
  }

  void send(std::int64_t merge, int from, int to, std::span<const std::int32_t> message,
            const select::lockstep& ls) {
    count(sends_[from], ls);
    longest_ = std::max(longest_, message.size());
    mail_[{merge, from, to}] = words(message.begin(), message.end());
  }
  words received(std::int64_t merge, int from, int to, const select::lockstep& ls) {
    count(receives_[to], ls);
    return std::move(mail_.extract({merge, from, to}).mapped());
  }

  struct messages {
    std::int64_t call = -1;
    int count = 0;
  };
  void count(messages& mine, const select::lockstep& ls) {
    if (mine.call != ls.calls()) mine = {.call = ls.calls()};
    busiest_ = std::max(busiest_, ++mine.count);
  }

  std::map<std::tuple<std::int64_t, int, int>, words> mail_;
  std::int64_t steps_ = 0;
  std::size_t longest_ = 0;
  std::map<int, messages> sends_, receives_;  // by rank, of its latest call with any
  int busiest_ = 0;
};

}  // namespace railpass::test
