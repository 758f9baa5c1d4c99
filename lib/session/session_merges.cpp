// SPDX-License-Identifier: BSL-1.0
//
// A session's steps in merges, and what comes after the last one.
#include "lib/session/process.hpp"
#include "lib/session/session.hpp"

#include <new>
#include <sched.h>
#include <utility>

namespace railpass {

void session::merge_steps() {
  {
    const std::unique_lock lock = guard();
    lockstep_.begin_steps(process_.clock()());
  }
  bool mismatch = false;
  const int code = merges_->make_due_steps(
      lockstep_, is_shared_ ? &mutex_ : nullptr,
      [this](MPI_Request& r, MPI_Status& s) { return wait_for(r, s); }, mismatch);
  note_merge(code, mismatch);
  {
    const std::unique_lock lock = guard();
    lockstep_.end_steps(process_.clock()());
  }
  if (rank_ == 0) process_.after_merge();
}

void session::leave() {
  if (!merges_) return;
  bool mismatch = false;
  merges_->leave(lockstep_, is_shared_ ? &mutex_ : nullptr, mismatch);
  note_merge(MPI_SUCCESS, mismatch);
  // Others may still make calls here, and wait in them.
  if (failed_) lane_->tell_all(base_lane::trouble::gone);
  try {
    bases::of_process().settle();
    bases::of_process().keep(std::move(merges_));
  } catch (const std::bad_alloc&) {  // what comes is dropped, and the number is not used again
    lane_->lose();
  }
}

void session::note_merge(int code, bool mismatch) {
  if (code != MPI_SUCCESS) leave_others();
  if (mismatch && !failed_)
    process_.record(
        "the ranks of a communicator did not make the same calls through railpass; it is not "
        "tuned any more");
}

int session::wait_for(MPI_Request& request, MPI_Status& status) {
  constexpr unsigned tests_per_look = 16;
  unsigned tests = 0;
  for (int done = 0;;) {
    if (const int failure = PMPI_Test(&request, &done, &status)) return failure;
    if (done) return MPI_SUCCESS;
    if (++tests % tests_per_look == 0) {
      keep_on();
      if (gone_) return MPI_ERR_OTHER;
    }
    sched_yield();
  }
}

}  // namespace railpass
