// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace railpass {

namespace detail {
// In the block of thread-local memory that exists from the start: reading it is one instruction.
extern constinit thread_local int inside_depth
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
}  // namespace detail

/// While one of these lives, this thread works for a call of railpass. The MPI functions that it
/// calls then, by whatever way, are not the user's: the preload library lets them through.
class inside {
 public:
  inside() { ++detail::inside_depth; }
  ~inside() { --detail::inside_depth; }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  static bool now() { return detail::inside_depth > 0; }
};

}  // namespace railpass
