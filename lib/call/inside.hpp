// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mpi.h>

#include <utility>

namespace railpass::internal {

// In the block of thread-local memory that exists from the start: reading it is one instruction.
struct thread_block {
  int inside_depth = 0;
  bool hands_on_users_call = false;
  bool times_next_call = false, times_this_call = false;  // see own_time.hpp
};
extern constinit thread_local thread_block of_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/// While one of these lives, this thread works for a call of railpass. The MPI functions that it
/// calls then, by whatever way, are not the user's: the preload library lets them through.
class inside {
 public:
  inside() { ++of_thread.inside_depth; }
  ~inside() { --of_thread.inside_depth; }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  static bool now() { return of_thread.inside_depth > 0; }

  /// The next call that goes through is the user's own, which the MPI library is to run.
  static void hands_on_users_call() { of_thread.hands_on_users_call = true; }
  static bool was_handed_on() { return std::exchange(of_thread.hands_on_users_call, false); }
};

/// Around what may call the program's error handler: that may leave by a longjmp, and then nothing
/// ends that lives here.
class outside {
 public:
  outside() : depth_(std::exchange(of_thread.inside_depth, 0)) {}
  ~outside() { of_thread.inside_depth = depth_; }
  outside(const outside&) = delete;
  outside& operator=(const outside&) = delete;

 private:
  int depth_;
};

/// As PMPI_Comm_call_errhandler.
inline void call_error_handler(MPI_Comm comm, int code) {
  const outside there;
  PMPI_Comm_call_errhandler(comm, code);
}

}  // namespace railpass::internal
