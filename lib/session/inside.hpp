// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace railpass {

namespace detail {
// In the block of thread-local memory that exists from the start: reading it is one instruction.
struct thread_block {
  int inside_depth = 0;
  bool weighs_next_call = false, weighs_this_call = false;  // see own_time.hpp
};
extern constinit thread_local thread_block of_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
}  // namespace detail

/// While one of these lives, this thread works for a call of railpass. The MPI functions that it
/// calls then, by whatever way, are not the user's: the preload library lets them through.
class inside {
 public:
  inside() { ++detail::of_thread.inside_depth; }
  ~inside() { --detail::of_thread.inside_depth; }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  static bool now() { return detail::of_thread.inside_depth > 0; }
};

}  // namespace railpass
