// SPDX-License-Identifier: BSL-1.0
//
// What tuning may cost a process: one account of all communicators that the process leads. A
// context that is tuned has limits of its own (guard.hpp, merge_pacing.hpp), which many contexts of
// few calls would add up to more than their calls take. So a communicator or context begins to be
// tuned only while the account has something left, and pays there whatever it costs from then on.
#pragma once

#include "railpass/base/float_environment.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

namespace railpass::select {

/// Thread-safe.
class account {
 public:
  account() = default;
  account(const account&) = delete;
  account& operator=(const account&) = delete;

  /// Calls of a communicator took so long.
  void earn(double seconds) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    calls_s_ += std::max(0.0, seconds);
  }
  /// One communicator alone may spend so much on merges before its calls have paid, and its longest
  /// call takes so long. The largest count.
  void allow(double merges_s, double longest_call_s) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    free_merges_s_ = std::max(free_merges_s_, merges_s);
    longest_call_s_ = std::max(longest_call_s_, longest_call_s);
  }
  /// What merges cost, and other work.
  void spend(double seconds) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    work_s_ += seconds;
  }
  /// By how much trials took longer than the arm in use.
  void spend_on_trials(double seconds) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    trials_s_ += std::max(0.0, seconds);
  }
  /// A decision, or a schedule. What takes longer than `longest_work_s` was waiting for a core, or
  /// for ranks that came late.
  void spend_on_work(double seconds) { spend(std::min(seconds, longest_work_s)); }
  /// One more communicator is tuned from now on. The first one is free, as there is nothing yet
  /// that it takes something from.
  void spend_on_set_up(double seconds) {
    if (!is_set_up_.exchange(true)) return;
    spend_on_work(seconds);
  }

  /// Whether one more context or communicator may begin to be tuned. The run counts from the first
  /// time on that is given here, by any one clock.
  bool allows_more(double now_s) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    if (!began_s_) began_s_ = now_s;
    run_s_ = std::max(run_s_, now_s - *began_s_);
    return work_s_ + std::max(0.0, trials_s_ - free_trials * longest_call_s_) <= bound_s();
  }
  double spent_s() const {
    const std::lock_guard lock(mutex_);
    return work_s_ + trials_s_;
  }

 private:
  static constexpr double longest_work_s = 1e-3;
  // The decisions of some contexts.
  static constexpr double free_s = 1.5e-3;
  static constexpr double share_of_calls = 0.03, share_of_run = 0.01;
  // As many calls as one context may spend on them before its calls have paid (guard.hpp): else
  // contexts of long calls would wait long for each other.
  static constexpr double free_trials = 40;

  double bound_s() const {
    return free_s + free_merges_s_ + share_of_calls * calls_s_ + share_of_run * run_s_;
  }

  mutable std::mutex mutex_;
  std::optional<double> began_s_;
  double calls_s_ = 0, run_s_ = 0;
  double free_merges_s_ = 0, longest_call_s_ = 0;
  double work_s_ = 0, trials_s_ = 0;
  std::atomic<bool> is_set_up_{false};
};

}  // namespace railpass::select
