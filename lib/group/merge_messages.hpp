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

/// The messages of a communicator's merges, each along the tree of its lockstep. Plain
/// point-to-point messages, whose receives are posted when a merge begins, so that they arrive
/// while calls are made: unlike a nonblocking collective none can be matched with another call's
/// when a rank has missed one, and none waits for the MPI library to be inside its own. Not thread
/// safe.
class merge_messages {
 public:
  /// Allocates all that will be needed.
  merge_messages(int rank, int num_ranks);
  /// What has not come is given up.
  ~merge_messages();
  merge_messages(const merge_messages&) = delete;
  merge_messages& operator=(const merge_messages&) = delete;

  /// Before the first step.
  void connect(std::shared_ptr<base_lane> over) { lane_ = std::move(over); }
  /// The same: ranks ask their parents for the time with their reports, and are told with the
  /// replies.
  void compare_clocks(shared_clock& of_ranks) { clock_ = &of_ranks; }

  /// Blocks until the request has ended; returns an MPI error code, and the request may then still
  /// be under way.
  using wait_function = std::function<int(MPI_Request&, MPI_Status&)>;

  /// Makes the steps of `ls` that are due. `guarded`, if it is not null, is held while others might
  /// see a change. Returns an MPI error code; `mismatch` is set if the ranks were found to differ.
  int make_due_steps(select::lockstep& ls, std::mutex* guarded, const wait_function& wait,
                     bool& mismatch);

  /// The communicator ends, on each rank when it comes to that: takes over what a merge under way
  /// has brought, and sends an empty message in place of each that others still wait for. Waits
  /// for nobody; what is still to come, empty or not, is received when has_settled() is asked.
  void leave(select::lockstep& ls, std::mutex* guarded, bool& mismatch);
  /// After leave(): whether all has come and left.
  bool has_settled();

 private:
  int make(select::merge_step step, select::lockstep& ls, std::mutex* guarded,
           const wait_function& wait, bool& mismatch);
  int start_receives(const select::lockstep& ls);
  int receive(MPI_Request& request, const wait_function& wait, int& words);
  void tell_children(std::size_t at, const select::tree_place& tree);
  void learn_clock(std::size_t words, const select::tree_place& tree);
  std::span<std::int32_t> report_of(int child) {
    constexpr auto size = std::size_t(select::merge_report::max_words);
    return std::span(reports_).subspan(size * std::size_t(child), size);
  }
  int send(std::span<const std::int32_t> words, int to, const select::lockstep& ls);

  std::shared_ptr<base_lane> lane_;
  int rank_ = 0;
  // Of the merge under way, or of the last one: what is sent, and from each child and the parent.
  std::vector<MPI_Request> sends_;
  std::vector<MPI_Request> receives_;
  MPI_Request receive_ = MPI_REQUEST_NULL;
  std::vector<std::int32_t> reports_;  // the children's, max_report_words each
  // Of their own, as they may be under way longer than the lockstep lives.
  std::array<std::int32_t, select::merge_report::max_words> report_{};
  std::vector<std::int32_t> reply_;  // what each child of a rank is told of the clock is behind it
  // If clocks are compared: when the report left, and when the children's came.
  shared_clock* clock_ = nullptr;
  double asked_s_ = 0;
  std::vector<double> came_s_;
};

}  // namespace railpass::internal
