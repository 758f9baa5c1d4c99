// SPDX-License-Identifier: BSL-1.0
//
// Decides which long waits are reported, and watches waits inside the MPI library with a thread,
// because railpass cannot look at the clock there.
#pragma once

#include <cstdint>
#include <string>

namespace railpass::internal {

/// A sentence for write_record.
struct wait_report {
  std::string text;
  bool for_user = false;
};

/// `text` says that `rank` of a communicator has waited for `waited_s`; reports begin after
/// `after_s` (both in seconds). The user sees reports of ranks 0 and 1, and of rank r after r/2
/// times as long, so that many waiting ranks print few lines. Each process reports a wait only if
/// it is longer than all before. Any thread may call.
wait_report report_of_wait(std::string text, int rank, double waited_s, double after_s);

class hang_watch {
  struct watched;

 public:
  /// Starts the thread once per process. The thread reports to `destination` (see write_record)
  /// after `after_s` seconds (0: never), and whenever the time has doubled. The thread takes no
  /// signals. Without a thread, nothing is reported.
  static void begin(double after_s, std::string destination);

  /// During its life, the thread that made it is inside MPI. Throws nothing.
  class wait {
   public:
    /// `doing`: for example "rank 3 is inside MPI_Finalize"; must outlive this object; empty: no
    /// report. `rank`: see report_of_wait.
    wait(int rank, const char* doing);
    ~wait();
    wait(const wait&) = delete;
    wait& operator=(const wait&) = delete;

   private:
    friend class hang_watch;
    friend struct watched;
    int rank_;
    const char* doing_;
    double began_s_ = 0;
    double next_report_s_ = 0;  // of waiting
    wait* next_ = nullptr;      // of the waits that are alive
  };
};

}  // namespace railpass::internal
