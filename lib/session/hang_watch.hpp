// SPDX-License-Identifier: BSL-1.0
//
// Waits inside the MPI library, in which railpass itself cannot look at the clock: a thread does.
#pragma once

#include <cstdint>
#include <string>

namespace railpass {

class hang_watch {
  struct watched;

 public:
  /// Starts the thread, once in a process, if it is to say anything: after `after_s` seconds, 0 for
  /// never, to `log_place` (see write_record). It takes no signals. Where none can be had nothing
  /// is said.
  static void begin(double after_s, std::string log_place);

  /// While this lives the thread that made it is inside MPI. Throws nothing.
  class wait {
   public:
    /// `doing`: "rank 3 is inside MPI_Finalize", say; outlives it. Nothing is said of an empty one.
    explicit wait(const char* doing);
    ~wait();
    wait(const wait&) = delete;
    wait& operator=(const wait&) = delete;

   private:
    friend class hang_watch;
    friend struct watched;
    const char* doing_;
    double until_s_ = 0;
    wait* next_ = nullptr;  // of those that live
  };
};

}  // namespace railpass
