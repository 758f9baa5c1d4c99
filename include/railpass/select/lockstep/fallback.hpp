// SPDX-License-Identifier: BSL-1.0
//
// Decides from which call on all ranks of a communicator are native after one rank has failed: a
// state machine without I/O on each rank that has heard of the failure.
//
// Rank 0 asks all ranks, along a tree, how many calls they have entered. A rank that has been asked
// enters no further call without permission. The answers come back along the tree, and the largest
// answer is the last call that is not native; rank 0 sends this number to all ranks. Up to that
// call ranks continue as they started: an arm of the MPI library runs, any other arm fails. All
// ranks therefore do the same in each call.
//
// A rank that has been asked must not block a rank in a later call that waits for it, in a call of
// the MPI library or for a message of the program. Therefore each rank permits the calls that it
// has entered to all ranks that it asks. If an answer is missing, rank 0 permits one more call,
// repeatedly. A rank may stay unasked because another rank computes or has ended. Such a rank
// continues after a while, because it has promised nothing.
#pragma once

#include "railpass/select/lockstep/merge_tree.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace railpass::select {

class fallback {
 public:
  /// The message of a rank to its children in the tree.
  struct order {
    std::int64_t last_call = 0;  ///< the last call that may be entered
    bool is_final = false;       ///< later calls are native

    friend bool operator==(const order&, const order&) = default;
  };

  fallback(int rank, int num_ranks) : tree_{rank, num_ranks, 4} {}

  const tree_position& tree() const { return tree_; }

  // ---- events on this rank; `entered` is the number of calls that the rank has entered

  /// This rank has failed, or has heard that another rank has.
  void hear(std::int64_t entered) {
    if (tree_.rank == 0) take({entered, false}, entered);
  }
  /// The parent has sent this order.
  void take(const order& told, std::int64_t entered) {
    if (order_.is_final) return;
    was_asked_ = true;
    allow(std::max(told.last_call, entered));
    order_.is_final = told.is_final;
    answer_if_all_have(entered);
  }
  /// A child has answered.
  void add_answer(std::int64_t childs, std::int64_t entered) {
    largest_ = std::max(largest_, childs);
    ++num_answers_;
    if (was_asked_) answer_if_all_have(entered);
  }
  /// The answers are late. No effect on ranks other than 0.
  void lose_patience() {
    if (tree_.rank == 0 && was_asked_ && !order_.is_final) allow(order_.last_call + 1);
  }
  /// This rank has made its last call, which is the last call of all ranks. The other ranks may
  /// enter all remaining calls, and no rank waits for this rank's answer.
  void leave(std::int64_t entered) {
    if (order_.is_final) return;
    was_asked_ = true;
    allow(std::numeric_limits<std::int64_t>::max());
    if (!answer_) answer_ = std::max(largest_, entered);
  }

  // ---- consequences

  bool was_asked() const { return was_asked_; }
  bool may_enter(std::int64_t call) const {
    return was_asked_ && (order_.is_final || call <= order_.last_call);
  }
  bool is_final() const { return order_.is_final; }
  /// Whether a call that may be entered is native on all ranks.
  bool is_native(std::int64_t call) const { return order_.is_final && call > order_.last_call; }
  /// The latest message for the children; empty before this rank was asked.
  std::optional<order> for_children() const {
    return was_asked_ ? std::optional(order_) : std::nullopt;
  }
  /// The answer to the parent, sent once.
  std::optional<std::int64_t> for_parent() const { return answer_; }

 private:
  void allow(std::int64_t call) { order_.last_call = std::max(order_.last_call, call); }
  void answer_if_all_have(std::int64_t entered) {
    if (answer_ || num_answers_ < tree_.num_children()) return;
    answer_ = std::max(largest_, entered);
    if (tree_.rank > 0) return;
    allow(*answer_);
    order_.is_final = true;
  }

  tree_position tree_;
  bool was_asked_ = false;
  order order_;
  int num_answers_ = 0;
  std::int64_t largest_ = 0;
  std::optional<std::int64_t> answer_;
};

}  // namespace railpass::select
