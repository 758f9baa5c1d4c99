// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/group/base.hpp"
#include "railpass/select/lockstep/lockstep.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace railpass::internal {

/// The messages of a communicator's merges, along the tree of its lockstep. Plain point-to-point
/// messages whose receives are posted when a merge begins, so that messages arrive during calls.
/// Compared with nonblocking collectives: a message never matches another call's message if a rank
/// has missed a merge, and never waits until the MPI library is called. Not thread-safe.
class merge_messages {
 public:
  /// Allocates everything that will be needed.
  merge_messages(int rank, int num_ranks);
  /// Gives up messages that have not arrived.
  ~merge_messages();
  merge_messages(const merge_messages&) = delete;
  merge_messages& operator=(const merge_messages&) = delete;

  /// Call before the first step.
  void connect(std::shared_ptr<base_lane> over) { lane_ = std::move(over); }
  /// Call before the first step. Ranks then ask their parents for the time with their reports, and
  /// get answers with the replies.
  void compare_clocks(shared_clock& of_ranks) { clock_ = &of_ranks; }

  /// Blocks until the request has ended. Returns an MPI error code; the request may then still be
  /// pending.
  using wait_function = std::function<int(MPI_Request&, MPI_Status&)>;

  /// Makes the due steps of `ls`. `guarded`, if not null, is held while other threads might see a
  /// change. Returns an MPI error code; sets `mismatch` if the ranks differ.
  int make_due_steps(select::lockstep& ls, std::mutex* guarded, const wait_function& wait,
                     bool& mismatch);

  /// After ls.conclude(): makes the steps before the communicator ends, as far as messages have
  /// come, without waiting. Returns whether all steps are made, or none can follow.
  bool conclude(select::lockstep& ls, std::mutex* guarded, bool& mismatch);

  /// The communicator ends on this rank. Takes over what a pending merge has brought, and sends an
  /// empty message for each message that other ranks still expect. Does not wait. has_settled()
  /// receives messages that arrive later.
  void leave(select::lockstep& ls, std::mutex* guarded, bool& mismatch);
  /// After leave(): whether all messages have arrived and left.
  bool has_settled();

 private:
  int make(select::merge_step step, select::lockstep& ls, std::mutex* guarded,
           const wait_function& wait, bool& mismatch);
  int start_receives(const select::lockstep& ls);
  int receive(MPI_Request& request, const wait_function& wait, int& words);
  void tell_children(std::size_t at, const select::tree_position& tree);
  void learn_clock(std::size_t words, const select::tree_position& tree);
  std::span<std::int32_t> report_of(int child) {
    constexpr auto size = std::size_t(select::merge_report::max_words);
    return std::span(reports_).subspan(size * std::size_t(child), size);
  }
  int send(std::span<const std::int32_t> words, int to, const select::lockstep& ls);

  std::shared_ptr<base_lane> lane_;
  int rank_ = 0;
  // For the pending or the last merge: sends, and receives from each child and the parent.
  std::vector<MPI_Request> sends_;
  std::vector<MPI_Request> receives_;
  MPI_Request receive_ = MPI_REQUEST_NULL;
  std::vector<std::int32_t> reports_;  // of the children, max_report_words each
  // Messages may outlive the lockstep, and those that are sent even this object.
  struct messages {
    std::array<std::int32_t, select::merge_report::max_words> report{};
    std::vector<std::int32_t> reply{};  // followed by the clock answer for each child of a rank
  };
  std::unique_ptr<messages> words_ = std::make_unique<messages>();
  // If clocks are compared: when the report left, and when the children's reports arrived.
  shared_clock* clock_ = nullptr;
  double asked_s_ = 0;
  std::vector<double> came_s_;
};

}  // namespace railpass::internal
