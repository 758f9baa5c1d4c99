// SPDX-License-Identifier: BSL-1.0
//
// What railpass itself takes of a settled call: from its entry to the start of its arm, and from
// the arm's end to its return. Weighed now and then in the call after a timed one, on rank 0 only,
// as other work has emptied the caches between calls and no benchmark knows how far.
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

class session;

/// Of one communicator. What a thread that lost its core in between has seen is an outlier.
class own_time {
 public:
  void add(double seconds) {
    const own_float_environment own;
    latest_s_[count_++ % latest_s_.size()] = float(seconds);
  }
  /// The median; nothing if hardly any call was weighed.
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

/// The weighing of one call, while it lasts; nothing if this thread's call is not to be weighed.
class weighing {
 public:
  weighing() {
    if (of_thread.weighs_next_call) [[unlikely]]
      begin();
  }
  ~weighing() {
    if (clock_) [[unlikely]]
      end();
  }
  weighing(const weighing&) = delete;
  weighing& operator=(const weighing&) = delete;

  /// This thread's next call shall be weighed.
  static void ask() { of_thread.weighs_next_call = true; }
  /// Whether the call that this thread is in is weighed.
  static bool now() { return of_thread.weighs_this_call; }
  /// The arm of this call took so long; `one` is to know what the rest of the call takes.
  static void arm_took(double seconds, session& one);
  /// This call does what a settled one does not.
  static void give_up() { of_thread.weighs_this_call = false; }

 private:
  void begin();
  void end();

  clock_function clock_ = nullptr;  // null: not weighed
  double began_s_ = 0, reading_s_ = 0;
};

}  // namespace railpass::internal
