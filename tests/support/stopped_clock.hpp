// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/runtime/process.hpp"

#include <utility>

namespace railpass::test {

using namespace internal;

/// While one lives, no time passes for railpass on this process but what the test says, and a
/// microsecond whenever it looks. For calls from one thread.
class stopped_clock {
 public:
  stopped_clock() : usual_(process::get()->clock()) { process::get()->use_clock(read); }
  ~stopped_clock() { process::get()->use_clock(usual_); }
  stopped_clock(const stopped_clock&) = delete;
  stopped_clock& operator=(const stopped_clock&) = delete;

  /// So much passes outside of calls.
  void pass(double seconds) { now_s_ += seconds; }

  /// So much passes in the call, in the first thing that railpass times there, or else when that is
  /// over: as where another rank comes late to it.
  template <class Call>
  void pass_in(double seconds, const Call& call) {
    looks_ = 0;
    waiting_s_ = seconds;
    call();
    now_s_ += std::exchange(waiting_s_, 0);
  }

 private:
  static double read() {
    if (++looks_ == 2) now_s_ += std::exchange(waiting_s_, 0);
    return now_s_ += 1e-6;
  }

  clock_function usual_;  // the library's, as an inline function's address may be another one here
  static inline double now_s_ = 1000, waiting_s_ = 0;
  static inline int looks_ = 0;
};

}  // namespace railpass::test
