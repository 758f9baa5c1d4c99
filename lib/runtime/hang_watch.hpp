// SPDX-License-Identifier: BSL-1.0
//
// Who hears of a long wait, and waits inside the MPI library, in which railpass itself cannot look
// at the clock: a thread does.
#pragma once

#include <cstdint>
#include <string>

namespace railpass::internal {

/// A sentence for write_record.
struct wait_report {
  std::string text;
  bool for_user = false;
};

/// `text` says that `rank` of a communicator has waited for `waited_s`, where reports begin after
/// `after_s`. For the user are those of ranks 0 and 1, and of rank r after r/2 times as long, so
/// that there are few lines however many ranks wait; and in each process only waits that are longer
/// than all before. Any thread may call.
wait_report report_of_wait(std::string text, int rank, double waited_s, double after_s);

class hang_watch {
  struct watched;

 public:
  /// Starts the thread, once in a process, if it is to say anything: after `after_s` seconds, 0 for
  /// never, and whenever the time has doubled, to `log_place` (see write_record). It takes no
  /// signals. Where none can be had nothing is said.
  static void begin(double after_s, std::string log_place);

  /// While this lives the thread that made it is inside MPI. Throws nothing.
  class wait {
   public:
    /// `doing`: "rank 3 is inside MPI_Finalize", say; outlives it. Nothing is said of an empty one.
    /// `rank`: as report_of_wait says.
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
    wait* next_ = nullptr;      // of those that live
  };
};

}  // namespace railpass::internal
