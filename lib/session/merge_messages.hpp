// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/select/plan.hpp"

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace railpass {

/// The messages of a communicator's merges, each along the tree of its lockstep. Plain
/// point-to-point messages, whose receives are posted when a merge begins, so that they arrive
/// while calls are made: unlike a nonblocking collective none can be matched with another call's
/// when a rank has missed one, and none waits for the MPI library to be inside its own. Not thread
/// safe.
class merge_messages {
 public:
  /// Allocates all that will be needed.
  merge_messages(int rank, int num_ranks);
  ~merge_messages();
  merge_messages(const merge_messages&) = delete;
  merge_messages& operator=(const merge_messages&) = delete;

  /// Before the first step: `comm` is railpass' own and outlives this.
  void connect(MPI_Comm comm) { comm_ = comm; }

  /// Blocks until the request has ended; returns an MPI error code, and the request may then still
  /// be under way.
  using wait_function = std::function<int(MPI_Request&)>;

  /// Makes the steps of `ls` that are due, or all that are left of a merge that has begun.
  /// `guarded`, if it is not null, is held while others might see a change. Returns an MPI error
  /// code; `mismatch` is set if the ranks were found to differ.
  int make_due_steps(select::lockstep& ls, std::mutex* guarded, const wait_function& wait,
                     bool& mismatch);
  int finish(select::lockstep& ls, std::mutex* guarded, const wait_function& wait, bool& mismatch);

 private:
  int make(select::merge_step step, select::lockstep& ls, std::mutex* guarded,
           const wait_function& wait, bool& mismatch);
  int start_receives(select::lockstep& ls);
  std::span<std::int32_t> report_of(int child) {
    constexpr auto size = std::size_t(select::lockstep::max_report_words);
    return std::span(reports_).subspan(size * std::size_t(child), size);
  }
  int send(std::span<const std::int32_t> words, int to, const select::lockstep& ls);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::vector<MPI_Request> sends_;  // of the merge under way, or of the last one
  // Of the merge under way: from each child, and from the parent.
  std::vector<MPI_Request> receives_;
  MPI_Request receive_ = MPI_REQUEST_NULL;
  std::vector<std::int32_t> reports_;  // the children's, max_report_words each
};

}  // namespace railpass
