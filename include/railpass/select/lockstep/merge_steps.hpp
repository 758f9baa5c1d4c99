// SPDX-License-Identifier: BSL-1.0
//
// The steps of a synchronisation ("merge"), by call. Reports travel up the tree and replies down.
// In one call a rank receives at most one message, sent a call ago, and sends at most one, so no
// rank waits; or all steps are made in one call. The messages are in merge_words.hpp.
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

  /// Counts a call; returns whether a step is due.
  bool begin_call() { return ++call_ >= next_at_; }
  std::int64_t calls() const { return call_; }

  merge_step due() const { return call_ < next_at_ ? merge_step::none : next_; }
  /// The next step of a started synchronisation, even if the step is not due.
  merge_step outstanding() const { return next_ == merge_step::post ? merge_step::none : next_; }

  /// Calls for each level of the tree, for the current synchronisation or else the next one; 0: all
  /// in one call.
  std::int32_t pace() const { return pace_; }
  /// Starts the next synchronisation after at most `gap` calls with this pace. During a
  /// synchronisation, the next one starts as soon as possible.
  void hasten(std::int32_t gap, std::int32_t pace) {
    if (next_ != merge_step::post) {
      hastened_to_ = std::min(hastened_to_, call_ + gap);
    } else if (call_ + gap <= next_at_) {
      next_at_ = call_ + gap;
      pace_ = pace;
    }
  }
  const tree_position& tree() const { return trees_[pace_ == 0 ? 1 : 0]; }
  /// Height of the tree of synchronisations that are spread over calls.
  int spread_height() const { return trees_[0].height(); }
  /// Steps `collect` and `deliver`: the child in question.
  int child() const { return child_; }
  /// Calls between answering and consuming.
  std::int32_t calls_to_reply() const { return pace_ * tree().height(); }

  // Each function ends the step of its name; received() also ends answering.
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
  /// The next synchronisation starts after `gap` calls.
  void consumed(std::int32_t gap, std::int32_t pace) {
    next_ = merge_step::post;
    next_at_ = std::min(call_ + gap, std::max(call_ + 1, hastened_to_));
    hastened_to_ = never;
    pace_ = pace;
  }
  /// Makes no more steps, not even of a started synchronisation.
  void stop() { next_at_ = never; }
  /// There is no next synchronisation.
  void consumed_last() {
    next_ = merge_step::post;
    next_at_ = never;
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  /// Child i is on level i and reports in that call; this rank receives the report one call later.
  void collect_from(int child) {
    child_ = child;
    const bool listens = child < tree().num_children();
    next_ = listens ? merge_step::collect : merge_step::report;
    next_at_ = posted_at_ + std::int64_t(pace_) * (listens ? child + 1 : tree().level());
  }
  /// The child with the largest subtree comes first. Each rank passes the reply on in the call in
  /// which it receives the reply.
  void deliver_from(int child) {
    child_ = child;
    next_ = child >= 0 ? merge_step::deliver : merge_step::consume;
    next_at_ = posted_at_ + std::int64_t(pace_) * (2 * tree().height() - (child + 1));
  }

  // State that every call reads.
  std::int64_t call_ = 0;
  std::int64_t next_at_ = 2;
  merge_step next_ = merge_step::post;

  std::array<tree_position, 2> trees_;
  int child_ = 0;
  std::int64_t posted_at_ = 0;
  std::int64_t hastened_to_ = never;  // the synchronisation after the current one
  std::int32_t pace_ = 1;
};

}  // namespace railpass::select
