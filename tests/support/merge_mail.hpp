// SPDX-License-Identifier: BSL-1.0
//
// Carries the merges of simulated ranks. A rank waits only for what it has to receive.
#pragma once

#include "railpass/select/plan.hpp"

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
  explicit merge_mail(int num_ranks) : num_ranks_(num_ranks) {}

  /// Makes the steps that are due on a rank. False if it has to wait for another one first.
  bool make_steps(int rank, select::lockstep& ls,
                  const std::function<void(select::merge_outcome)>& consumed) {
    for (; ls.due() != select::merge_step::none; ++steps_)
      if (!make_step(rank, ls, consumed)) return false;
    return true;
  }

  /// The same on all ranks at once. False if they wait for each other.
  bool make_steps(std::span<select::lockstep> all,
                  const std::function<void(int rank, select::merge_outcome)>& consumed) {
    for (bool waiting = true; waiting;) {
      waiting = false;
      const std::int64_t before = steps_;
      for (int r = 0; r < int(all.size()); ++r)
        waiting |= !make_steps(r, all[std::size_t(r)],
                               [&](select::merge_outcome outcome) { consumed(r, outcome); });
      if (waiting && steps_ == before) return false;
    }
    return true;
  }

  std::int64_t steps() const { return steps_; }     ///< made so far, on all ranks
  std::size_t longest() const { return longest_; }  ///< message, in words

 private:
  using words = std::vector<std::int32_t>;

  bool make_step(int rank, select::lockstep& ls,
                 const std::function<void(select::merge_outcome)>& consumed) {
    const select::tree_place place{rank, num_ranks_};
    const std::int64_t merge = ls.merges();
    switch (ls.due()) {
      case select::merge_step::none:
        break;
      case select::merge_step::post:
        ls.post();
        break;
      case select::merge_step::collect:
        for (int i = 0; i < place.num_children(); ++i)
          if (!mail_.contains({merge, place.child(i), rank})) return false;
        for (int i = 0; i < place.num_children(); ++i)
          ls.add(received(merge, place.child(i), rank));
        if (rank == 0)
          ls.answer();
        else
          send(merge, rank, place.parent(), ls.report());
        break;
      case select::merge_step::deliver: {
        if (rank > 0) {
          if (!mail_.contains({merge, place.parent(), rank})) return false;
          const words message = received(merge, place.parent(), rank);
          std::copy_n(message.begin(), message.size(), ls.reply_room().begin());
        }
        const std::span<const std::int32_t> reply = ls.reply();
        for (int i = 0; i < place.num_children(); ++i) send(merge, rank, place.child(i), reply);
        break;
      }
      case select::merge_step::consume:
        consumed(ls.consume());
        break;
    }
    return true;
  }

  void send(std::int64_t merge, int from, int to, std::span<const std::int32_t> message) {
    longest_ = std::max(longest_, message.size());
    mail_[{merge, from, to}] = words(message.begin(), message.end());
  }
  words received(std::int64_t merge, int from, int to) {
    words message = std::move(mail_.extract({merge, from, to}).mapped());
    message.resize(std::max(message.size(), std::size_t(select::lockstep::max_report_words)),
                   select::lockstep::neutral);
    return message;
  }

  int num_ranks_;
  std::map<std::tuple<std::int64_t, int, int>, words> mail_;
  std::int64_t steps_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace railpass::test
