// SPDX-License-Identifier: BSL-1.0
//
// The interface of policies: the questions of the leader and the answers. A policy object serves
// one context and lives on rank 0 of the communicator only; the other ranks follow its plans
// (lockstep.hpp). Policies are pure logic: the same seed, priors and observations give the same
// plans.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/select/policy/arm_book.hpp"
#include "railpass/select/policy/time_estimate.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::select {

/// The prior estimate of an arm. All times are natural logarithms of seconds.
struct arm_prior {
  int arm = 0;  ///< its number: the index in arms_of(op); everything below uses this number
  double log_seconds = 0;    ///< expected ln of its time; ignored if `measured_only`
  double spread = 0.35;      ///< standard deviation of ln(true / expected) specific to the arm
  int family = 0;            ///< equal for the arms of one algorithm, whose errors are correlated
  double log2_segment = 24;  ///< log2 of segment_bytes, 24 if the message is not segmented
  bool one_segment = false;  ///< its segments are no smaller than the message
  bool native =
      false;  ///< runs without railpass: the MPI library's own collective, or a set's first version
  bool measured_only = false;  ///< the arm has no prediction, only measurements
  /// For arms without a prediction: estimated slower than the other arms by this (in the
  /// logarithm).
  double lag = 0;
  /// The prediction is a measurement of the same context, or of near contexts of its set.
  bool remembered = false;
  std::int64_t earlier_samples = 0;  ///< of the same context, in earlier runs
  std::vector<double> attributes{};  ///< of a function set's version; empty for collectives
  friend bool operator==(const arm_prior&, const arm_prior&) = default;
};

/// The arms of a function set whose versions have these values, with unknown times.
inline std::vector<arm_prior> arms_of_versions(std::span<const std::vector<double>> values) {
  std::vector<arm_prior> arms;
  for (const std::vector<double>& own : values)
    arms.push_back({.arm = int(arms.size()),
                    .family = int(arms.size()),
                    .native = arms.empty(),
                    .measured_only = true,
                    .attributes = own});
  return arms;
}

/// Predictions with less spread come from times of this machine, and are trusted without
/// measurements.
inline constexpr double trusted_spread = 0.45;
/// Within this factor (in the logarithm), an arm's time is unchanged since an earlier run.
inline constexpr double as_before = 0.4;

/// Whether an arm takes as long as in an earlier run, by its latest samples.
/// @param now its times in this run; null: no sample
inline bool is_as_before(const arm_prior& earlier, const arm_times* now) {
  return earlier.remembered && now &&
         std::abs(std::log(now->usual_s()) - earlier.log_seconds) <= as_before;
}

/// A call of the next epoch that runs another arm than the incumbent. `position` counts the
/// context's calls from the one at which the plan becomes active.
struct exploration {
  int position = 0;
  int arm = 0;
  friend bool operator==(const exploration&, const exploration&) = default;
};

/// The plan of a context until its next plan. The incumbent runs in all calls outside the list and
/// beyond `length` calls. With a `period` the list restarts every `period` calls.
struct epoch_plan {
  static constexpr std::size_t max_explore = 48;

  int incumbent = 0;
  std::vector<exploration> explore{};  ///< ascending positions, at most max_explore
  int length = 2;                      ///< calls after which a new plan is wanted
  int timed_stride = 1;                ///< one of this many calls of the incumbent is timed
  int period = 0;                      ///< more than the last position, or 0: the list runs once
  bool settled = false;  ///< no other arm is likely to be clearly faster; set by the leader
  /// Calls start by asking all ranks for their size, and run the arm for that size. The policy says
  /// whether asking is useful; the leader decides.
  bool asks_size = false;
  /// One of this many calls is checked; 0: none. Set by the leader, as the next member.
  int check_stride = 0;
  int first_checks = 0;  ///< of so many arms that were not checked, the next call is checked, too
};

/// The input of a plan.
struct planning_input {
  std::int64_t calls = 0;          ///< calls of this context so far
  double merge_cost_s = 0;         ///< cost of one synchronisation for the calls around it
  double reply_calls = 0;          ///< calls beyond `length` until the next plan arrives
  std::span<const int> pending{};  ///< arms of timed calls that are not observed yet
  /// Ranks share cores: work of a rank that waits also delays other ranks outside the call, so an
  /// arm may cost the program more than its times show.
  bool shares_cores = false;
};

class policy {
 public:
  virtual ~policy() = default;

  /// Learns from the latest synchronisation of the context's book. The policy reads the book until
  /// it learns again or ends.
  virtual void learn(const arm_book& book) = 0;
  virtual epoch_plan plan(const planning_input& now) = 0;

  /// The arms of the context as given, without ineligible arms.
  virtual std::span<const arm_prior> arms() const = 0;
  /// P(arm) for the next calls by the last plan, in the order of arms(); sums to 1.
  virtual std::vector<double> probabilities() const = 0;
  /// The estimate for an arm's number; empty without prediction and measurement.
  virtual std::optional<time_estimate> posterior(int arm) const = 0;
  /// One sentence that says why the current incumbent was chosen.
  virtual std::string reason() const = 0;
};

/// The input from which all policies are created; each policy uses a part of it.
struct policy_input {
  std::vector<arm_prior> priors{};  ///< the eligible arms; exactly one is `native`
  std::string baseline = "native";  ///< the name of the native arm in reasons
  std::uint64_t seed = 1;           ///< equal seeds, equal plans
  bool all_wait = false;            ///< all ranks wait for all others: a slow call delays all
  bool says_worth = false;          ///< measure the gain of tuning, for a report at the end
  double pass_exponent = 4;         ///< parameter g of policy `pass`
  std::optional<int> fixed_arm{};   ///< policy `fixed`: the number of the pinned arm
};

/// A policy as lists of policies have it.
struct policy_description {
  std::string_view name;
  std::string_view text;
  bool is_native_only;  ///< no arm but native needs a prior
  std::unique_ptr<policy> (*make)(policy_input input);
};

}  // namespace railpass::select
