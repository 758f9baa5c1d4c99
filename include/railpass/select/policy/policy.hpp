// SPDX-License-Identifier: BSL-1.0
//
// What a policy is asked and what it answers. One policy instance serves one context and lives on
// rank 0 of the communicator only; the other ranks follow the plans it makes (lockstep.hpp). Pure
// logic: the same seed, priors and observations give the same plans.
#pragma once

#include "railpass/base/error.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace railpass::select {

/// What is thought of an arm before it runs. All times are natural logarithms of seconds.
struct arm_prior {
  int arm = 0;  ///< its number: the place in arms_of(op); everything below speaks of this number
  double log_seconds = 0;    ///< expected ln of its time; ignored if `measured_only`
  double spread = 0.35;      ///< standard deviation of ln(true / expected) that is the arm's own
  int family = 0;            ///< equal for the arms of one algorithm, which err together
  double log2_segment = 24;  ///< log2 of segment_bytes, 24 if the message is not segmented
  bool one_segment = false;  ///< its segments are no smaller than the message
  bool native =
      false;  ///< what runs without railpass: the MPI library's own, a set's first version
  bool measured_only = false;  ///< there is no prediction: only measurements tell
  /// Without a prediction: by how much longer (of the logarithm) it is thought to take than others.
  double lag = 0;
  /// The prediction is what it took in the same context before, or in near ones of its set.
  bool remembered = false;
  std::vector<double> attributes{};  ///< of a function set's version; a collective's arms have none
  friend bool operator==(const arm_prior&, const arm_prior&) = default;
};

/// One timed call, merged over the ranks.
struct observation {
  int arm = 0;
  double seconds = 0;
  /// It has nothing of another arm's call before it, as it would where ranks need not wait for all.
  bool after_itself = true;
  double bytes = -1;  ///< where only merges tell it: the size of the call; negative: not known
};

/// A call of the coming epoch that runs another arm than the incumbent. `position` counts the calls
/// of the context from the one at which the plan becomes active.
struct exploration {
  int position = 0;
  int arm = 0;
  friend bool operator==(const exploration&, const exploration&) = default;
};

/// What the context does until its next plan. Beyond `length` calls, or once the list is exhausted,
/// the incumbent runs; with a `period` the list starts again every so many calls.
struct epoch_plan {
  static constexpr std::size_t max_explore = 48;

  int incumbent = 0;
  std::vector<exploration> explore{};  ///< ascending positions, at most max_explore
  int length = 2;                      ///< calls after which a new plan is wanted
  int timed_stride = 1;                ///< one in so many calls of the incumbent is timed
  int period = 0;                      ///< more than the last position, or 0: the list runs once
  bool settled = false;  ///< no other arm is likely to be clearly faster; the leader says so
  /// Calls begin by asking all ranks for their size, and take the arm of that size: the policy says
  /// whether that is of use, the leader whether it is done.
  bool asks_size = false;
};

/// What a policy is told when it is asked for a plan.
struct planning_input {
  std::int64_t calls = 0;          ///< calls of this context so far
  double merge_cost_s = 0;         ///< what learning once costs the calls around it
  double reply_calls = 0;          ///< calls beyond `length` until the next plan is there
  std::span<const int> pending{};  ///< arms of calls that were or will be timed, not yet observed
  /// Ranks share cores: what a rank does while it waits delays others outside of the call, too, so
  /// times do not tell all of what an arm costs the program.
  bool shares_cores = false;
};

/// Mean and spread (standard deviation of the logarithm of the mean) of an arm's time.
struct arm_posterior {
  double mean_s = 0;
  double spread = 0;
};

class policy {
 public:
  virtual ~policy() = default;

  /// Takes over what was measured; `calls` is the number of calls of the context so far.
  virtual void learn(std::span<const observation> merged, std::int64_t calls) = 0;
  virtual epoch_plan plan(const planning_input& now) = 0;

  /// The arms of the context, as given, ineligible ones left out.
  virtual std::span<const arm_prior> arms() const = 0;
  /// P(arm) for the next calls by the last plan, in the order of arms(); sums to 1.
  virtual std::vector<double> probabilities() const = 0;
  /// `arm` is an arm's number. Nothing if nobody can say (not predicted, not measured).
  virtual std::optional<arm_posterior> posterior(int arm) const = 0;
  /// One sentence: why the current incumbent is chosen.
  virtual std::string reason() const = 0;
};

/// What every policy is made from; each takes what it needs.
struct policy_input {
  std::vector<arm_prior> priors{};  ///< the eligible arms; exactly one is `native`
  std::uint64_t seed = 1;           ///< equal seeds, equal plans
  bool all_wait = false;            ///< all ranks wait for all others: a slow call holds up each
  bool says_worth = false;          ///< somebody wants to know at the end what tuning was worth
  double pass_exponent = 4;         ///< policy `pass`: g
  std::optional<int> fixed_arm{};   ///< policy `fixed`: the number of the arm asked for
};

}  // namespace railpass::select
