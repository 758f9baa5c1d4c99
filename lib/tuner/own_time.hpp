// SPDX-License-Identifier: BSL-1.0
//
// The overhead of railpass in a converged call: from its entry to the start of the arm, and from
// the arm's end to the return. Measured now and then in the call after a timed call, on rank 0.
// Benchmarks cannot replace this, because they do not know how far a program's work empties the
// caches between calls.
#pragma once

#include "lib/call/inside.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/statistics.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace railpass::internal {

class tuned_contexts;

/// Overheads of one communicator. A thread that lost its core during a call adds an outlier.
class own_time {
 public:
  void add(double seconds) {
    const own_float_environment own;
    latest_s_[count_++ % latest_s_.size()] = float(seconds);
  }
  /// The median; nothing if too few calls were measured.
  std::optional<double> of_call_s() const {
    if (count_ < few) return std::nullopt;
    std::array<double, most> known{};
    const std::size_t n = std::min(count_, most);
    std::copy_n(latest_s_.begin(), n, known.begin());
    return median(std::span(known).first(n));
  }

 private:
  static constexpr std::size_t few = 5, most = 63;
  std::array<float, most> latest_s_{};
  std::size_t count_ = 0;
};

/// Measures one call during the object's life; does nothing if this thread's call is not selected.
class overhead_timing {
 public:
  overhead_timing() {
    if (of_thread.times_next_call) [[unlikely]]
      begin();
  }
  ~overhead_timing() {
    if (clock_) [[unlikely]]
      end();
  }
  overhead_timing(const overhead_timing&) = delete;
  overhead_timing& operator=(const overhead_timing&) = delete;

  /// Selects this thread's next call.
  static void ask() { of_thread.times_next_call = true; }
  /// Whether this thread's present call is measured.
  static bool now() { return of_thread.times_this_call; }
  /// The arm of this call took `seconds`. `one` receives the overhead of the call.
  static void arm_took(double seconds, tuned_contexts& one);
  /// Discards the measurement, because this call does more than a converged call.
  static void give_up() { of_thread.times_this_call = false; }

 private:
  void begin();
  void end();

  clock_function clock_ = nullptr;  // null: not measured
  double began_s_ = 0, reading_s_ = 0;
};

}  // namespace railpass::internal
