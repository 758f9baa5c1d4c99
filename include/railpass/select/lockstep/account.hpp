// SPDX-License-Identifier: BSL-1.0
//
// The budget of tuning for a process: one account for all communicators that the process leads.
// Each tuned context has limits of its own (guard.hpp, merge_pacing.hpp), but with many contexts of
// few calls they would add up to more than the calls' time. Therefore tuning of a communicator or
// context starts only while the account has something left, and then charges its costs to the
// account.
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

  /// Adds the time of a communicator's calls.
  void earn(double seconds) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    calls_s_ += std::max(0.0, seconds);
    granted_checks_s_ = 0;
  }
  /// Sets the time that one communicator alone may spend on synchronisations before its calls have
  /// paid, and its longest call. The largest values count.
  void allow(double merges_s, double longest_call_s) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    free_merges_s_ = std::max(free_merges_s_, merges_s);
    longest_call_s_ = std::max(longest_call_s_, longest_call_s);
  }
  /// Charges the cost of synchronisations and other work.
  void spend(double seconds) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    work_s_ += seconds;
  }
  /// Charges the time by which trials took longer than the arm in use.
  void spend_on_trials(double seconds) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    trials_s_ += std::max(0.0, seconds);
  }
  /// Charges a decision or a schedule. Any time beyond `longest_work_s` was spent waiting for a
  /// core or for late ranks.
  void spend_on_work(double seconds) { spend(std::min(seconds, longest_work_s)); }
  /// Charges the set-up of one more communicator. The first one is free, because no earlier tuning
  /// has used the budget.
  void spend_on_set_up(double seconds) {
    if (!is_set_up_.exchange(true)) return;
    spend_on_work(seconds);
  }

  /// Whether tuning of one more context or communicator may start. The run starts at the first time
  /// given here, by any one clock.
  bool allows_more(double now_s) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    if (!began_s_) began_s_ = now_s;
    run_s_ = std::max(run_s_, now_s - *began_s_);
    return work_s_ + std::max(0.0, trials_s_ - free_trials * longest_call_s_) <= bound_s();
  }
  /// Charges checks of results.
  void spend_on_checks(double seconds) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    checks_s_ += seconds;
  }
  /// How many of `wanted` checks, each of `check_s`, may happen before calls are added again: this
  /// share of the calls' time pays for them, except for a few short ones.
  int grant_checks(double share, double check_s, int wanted) {
    const own_float_environment own;
    const std::lock_guard lock(mutex_);
    const double unpaid_s = check_s <= longest_free_check_s ? free_checks_s : 0;
    const double left_s = unpaid_s + share * calls_s_ - checks_s_ - granted_checks_s_;
    const int granted = int(std::clamp(left_s / check_s, 0.0, double(wanted)));
    granted_checks_s_ += granted * check_s;
    return granted;
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
  // As many trial calls as one context may spend before its calls have paid (guard.hpp). Otherwise
  // contexts of long calls would wait long for each other.
  static constexpr double free_trials = 40;
  // The first checks of some arms, of calls of up to some 40 us.
  static constexpr double free_checks_s = 1e-3, longest_free_check_s = 2e-4;

  double bound_s() const {
    return free_s + free_merges_s_ + share_of_calls * calls_s_ + share_of_run * run_s_;
  }

  mutable std::mutex mutex_;
  std::optional<double> began_s_;
  double calls_s_ = 0, run_s_ = 0;
  double free_merges_s_ = 0, longest_call_s_ = 0;
  double work_s_ = 0, trials_s_ = 0, checks_s_ = 0;
  double granted_checks_s_ = 0;  // since calls were added
  std::atomic<bool> is_set_up_{false};
};

}  // namespace railpass::select
