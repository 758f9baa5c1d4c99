// SPDX-License-Identifier: BSL-1.0
//
// A safety net for knowledge of earlier runs: the policy starts with that knowledge, and a new
// policy of the same kind without knowledge takes over if measurements contradict it.
//
// A slower clock makes all times longer and contradicts nothing. Therefore the ratio of an arm's
// time to native's counts, from calls between the same two synchronisations. (The paper uses
// absolute times: Feki, Gabriel: Incorporating Historic Knowledge into a Self-Optimizing
// Communication Library.) Native is called for the comparison only if several calls of the arm in
// use took longer than before: its first call may open connections.
#pragma once

#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace railpass::knowledge {

class recalling_policy final : public select::policy {
 public:
  using maker = std::function<std::unique_ptr<select::policy>()>;

  /// @param believing has some priors that are `remembered`
  /// @param afresh creates a policy that has none
  recalling_policy(std::unique_ptr<select::policy> believing, maker afresh)
      : playing_(std::move(believing)), afresh_(std::move(afresh)) {
    for (const select::arm_prior& p : playing_->arms()) {
      if (p.native) native_ = p.arm;
      if (p.remembered) known_.push_back({.prior = p});
    }
  }

  void learn(const select::arm_book& book) override {
    for (known_arm& a : known_) a.times = book.find(a.prior.arm);
    if (afresh_ && book.calls() <= last_look) compare();
    if (is_contradicted_) {
      playing_ = std::exchange(afresh_, nullptr)();
      is_contradicted_ = false;
    }
    playing_->learn(book);
  }

  select::epoch_plan plan(const select::planning_input& now) override {
    select::epoch_plan p = playing_->plan(now);
    if (afresh_ && suspect_) ask(p);
    return p;
  }

  std::span<const select::arm_prior> arms() const override { return playing_->arms(); }
  std::vector<double> probabilities() const override { return playing_->probabilities(); }
  std::optional<select::time_estimate> posterior(int arm) const override {
    return playing_->posterior(arm);
  }
  std::string reason() const override {
    return playing_->reason() + (known_.empty() ? ""
                                 : afresh_
                                     ? "; earlier runs are counted in"
                                     : "; earlier runs contradict this run and are not counted in");
  }

 private:
  // Single calls differ by at least least_noise (in the logarithm). A difference from earlier runs
  // that the calls' own noise explains is no change.
  static constexpr double least_noise = 0.2, deviations = 3;
  static constexpr std::int64_t enough = 2;        // calls of an arm
  static constexpr int soon = 8;                   // calls until a comparison with native
  static constexpr std::int64_t last_look = 1000;  // call: by then what was measured counts

  /// An arm that earlier runs know.
  struct known_arm {
    select::arm_prior prior{};
    const select::arm_times* times = nullptr;  // in this run; null: not seen

    std::int64_t samples() const { return times ? times->sums.samples : 0; }
    bool is_seen() const { return samples() >= enough; }
    /// The lower median of the calls in this run: a single slow call does not count.
    double middle() const { return std::log(select::level_of(times->latest_s())); }
    /// By how much the calls take longer than before, and the variance of the difference.
    double longer() const { return middle() - prior.log_seconds; }
    double variance(double noise) const {
      return prior.spread * prior.spread + noise * noise / double(times->latest_s().size());
    }
  };

  /// Standard deviation of single calls, over all arms.
  double noise() const {
    double squares = 0, freedom = 0;
    for (const known_arm& a : known_) {
      if (!a.is_seen()) continue;
      for (const double seconds : a.times->latest_s()) {
        const double apart = std::log(seconds) - a.middle();
        squares += apart * apart;
        ++freedom;
      }
      --freedom;
    }
    return freedom > 0 ? std::max(least_noise, std::sqrt(squares / freedom)) : least_noise;
  }
  static bool differs(double by, double variance) {
    return std::abs(by) > std::max(select::as_before, deviations * std::sqrt(variance));
  }

  void compare() {
    const double noise_now = noise();
    suspect_.reset();
    for (const known_arm& a : known_) {
      if (!a.times) continue;
      if (differs(a.longer(), a.variance(noise_now))) suspect_ = a.prior.arm;
      for (const known_arm& b : known_)
        if (a.is_seen() && b.is_seen() &&
            differs(a.longer() - b.longer(), a.variance(noise_now) + b.variance(noise_now)))
          is_contradicted_ = true;
    }
  }

  /// Asks for more calls of an arm whose time seems to have changed. If it still seems to have
  /// changed, asks for calls of native, or, if the arm is native, of the next best arm.
  void ask(select::epoch_plan& p) const {
    std::vector<select::exploration> calls;
    const auto call = [&](const known_arm& a) {
      for (std::int64_t n = a.samples(); n < enough; ++n)
        calls.push_back({int(calls.size()), a.prior.arm});
    };
    const known_arm* beside = nullptr;
    for (const known_arm& a : known_) {
      if (a.prior.arm == *suspect_) {
        call(a);
      } else if (a.prior.arm == native_ ||
                 (*suspect_ == native_ &&
                  (!beside || a.prior.log_seconds < beside->prior.log_seconds))) {
        beside = &a;
      }
    }
    const bool asks_itself = !calls.empty();
    if (beside && !asks_itself) call(*beside);
    if (calls.empty()) return;
    for (select::exploration& e : p.explore) e.position += int(calls.size());
    p.explore.insert(p.explore.begin(), calls.begin(), calls.end());
    if (p.explore.size() > select::epoch_plan::max_explore)
      p.explore.resize(select::epoch_plan::max_explore);
    p.timed_stride = 1;
    p.length = std::min(p.length, asks_itself ? int(calls.size()) : soon);
  }

  std::unique_ptr<select::policy> playing_;
  maker afresh_;  // null once its policy is in use
  std::vector<known_arm> known_;
  int native_ = 0;
  std::optional<int> suspect_;  // an arm whose time has changed
  bool is_contradicted_ = false;
};

}  // namespace railpass::knowledge
