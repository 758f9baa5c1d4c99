// SPDX-License-Identifier: BSL-1.0
//
// In which call a rank makes which step of a merge. Reports travel up the tree and replies down
// again: in one call a rank receives at most one message and sends at most one, and what it
// receives has been sent a call ago, so nobody waits; or all do everything in one call.
#pragma once

#include "railpass/select/lockstep/merge_tree.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace railpass::select {

enum class merge_step : std::uint8_t { none, post, collect, report, receive, deliver, consume };

class merge_steps {
 public:
  merge_steps(int rank, int num_ranks) : trees_(merge_trees(rank, num_ranks)) {}

  /// Counts a call; true if a step is due in it.
  bool begin_call() { return ++call_ >= next_at_; }
  std::int64_t calls() const { return call_; }

  merge_step due() const { return call_ < next_at_ ? merge_step::none : next_; }
  /// The next step of a merge that has begun, even if it is not due.
  merge_step outstanding() const { return next_ == merge_step::post ? merge_step::none : next_; }

  /// Of the merge that is under way, or else of the next one: calls that it takes for each level of
  /// the tree; 0: all at once.
  std::int32_t pace() const { return pace_; }
  /// The next merge begins after `gap` calls, unless it would sooner: of this pace, or, if one is
  /// under way, as soon as that allows.
  void hasten(std::int32_t gap, std::int32_t pace) {
    if (next_ != merge_step::post) {
      hastened_to_ = std::min(hastened_to_, call_ + gap);
    } else if (call_ + gap <= next_at_) {
      next_at_ = call_ + gap;
      pace_ = pace;
    }
  }
  const tree_place& tree() const { return trees_[pace_ == 0 ? 1 : 0]; }
  /// Of the tree of merges that are spread over calls.
  int spread_height() const { return trees_[0].height(); }
  /// Steps `collect` and `deliver`: which of the rank's children in it they are about.
  int child() const { return child_; }
  /// Calls from answering to consuming.
  std::int32_t calls_to_reply() const { return pace_ * tree().height(); }

  // Each ends the step of its name; received() is answering, too.
  void posted() {
    posted_at_ = call_;
    collect_from(0);
  }
  void collected() { collect_from(child_ + 1); }
  void reported() {
    next_ = merge_step::receive;
    next_at_ = posted_at_ + std::int64_t(pace_) * (2 * tree().height() - tree().level());
  }
  void received() { deliver_from(tree().num_children() - 1); }
  void delivered() { deliver_from(child_ - 1); }
  /// The next merge begins after `gap` calls.
  void consumed(std::int32_t gap, std::int32_t pace) {
    next_ = merge_step::post;
    next_at_ = std::min(call_ + gap, std::max(call_ + 1, hastened_to_));
    hastened_to_ = never;
    pace_ = pace;
  }
  /// No step is made any more, not even of a merge that is under way.
  void stop() { next_at_ = never; }
  /// There is no next one.
  void consumed_last() {
    next_ = merge_step::post;
    next_at_ = never;
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  /// Child i is on level i and reports in that call; in the next one it is listened to.
  void collect_from(int child) {
    child_ = child;
    const bool listens = child < tree().num_children();
    next_ = listens ? merge_step::collect : merge_step::report;
    next_at_ = posted_at_ + std::int64_t(pace_) * (listens ? child + 1 : tree().level());
  }
  /// The child with most below it first. Each passes the reply on in the call in which it gets it.
  void deliver_from(int child) {
    child_ = child;
    next_ = child >= 0 ? merge_step::deliver : merge_step::consume;
    next_at_ = posted_at_ + std::int64_t(pace_) * (2 * tree().height() - (child + 1));
  }

  // What every call reads.
  std::int64_t call_ = 0;
  std::int64_t next_at_ = 2;
  merge_step next_ = merge_step::post;

  std::array<tree_place, 2> trees_;
  int child_ = 0;
  std::int64_t posted_at_ = 0;
  std::int64_t hastened_to_ = never;  // the merge after the one that is under way
  std::int32_t pace_ = 1;
};

}  // namespace railpass::select
