// SPDX-License-Identifier: BSL-1.0
//
// Decides when the next synchronisation of statistics ("merge") happens, and whether within one
// call. A few synchronisations are free; afterwards their cost is a limited share of the time in
// calls.
#pragma once

#include "railpass/select/lockstep/account.hpp"
#include "railpass/select/lockstep/merge_costs.hpp"
#include "railpass/select/lockstep/merge_words.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace railpass::select {

/// The demand of the calls since the last answer for the next synchronisation.
struct merge_demand {
  double calls = 1;                   ///< of the communicator
  double calls_s = 0;                 ///< sum of the calls with a policy
  double call_s = 0;                  ///< calls_s per call of the communicator
  double longest_call_s = 0;          ///< the largest mean call time of any context
  double gap = longest_epoch;         ///< calls until the first context wants its next plan
  int shortest_plan = longest_epoch;  ///< in calls of its context
};

/// A synchronisation earlier than the last reply announced.
struct hastened_merge {
  std::int32_t gap = longest_epoch;  ///< calls until the synchronisation starts
  std::int32_t pace = 1;
};

class merge_pacing {
 public:
  /// @param spread_height height of the tree of synchronisations that are spread over calls
  /// @param passed_s time per call so far, in seconds; 0 if unknown
  /// @param of_process account for costs and call times, which outlives this object; null: no
  ///   account
  explicit merge_pacing(int spread_height, const merge_costs& costs = {}, double passed_s = 0,
                        account* of_process = nullptr)
      : account_(of_process),
        spread_calls_(2 * spread_height),
        costs_(costs),
        passed_s_(passed_s),
        others_spend_s_(costs.spread_s / 2) {}

  /// The measured cost of one synchronisation that is spread over calls.
  double spread_cost_s() const { return costs_.spread_s; }
  /// The cost of all synchronisations so far.
  double all_cost_s() const { return all_cost_s_; }
  /// The share of call time, in [0, 1], during which other calls were counted as well, because a
  /// rank is in the next call while other ranks are still in this call. The share is not visible if
  /// the program computes between calls and only some of the calls between two synchronisations
  /// overlap.
  double overlapped_share() const { return calls_s_ > 0 ? 1 - elapsed_s_ / calls_s_ : 0; }

  /// The synchronisation that follows the first plan of a new context: as soon as the plan is over
  /// and its calls have paid for the excess cost so far. If all other contexts have converged, the
  /// next regular synchronisation is far away, and its gap assumed calls that may be much longer.
  /// @param call_s expected time of the context's calls; 0 if unknown
  /// @param least_s lower bound of that time
  /// @param plan_length calls of the first plan
  /// @param calls since the last answer
  hastened_merge after_first_plan(double call_s, double least_s, bool all_wait, int plan_length,
                                  double calls) const {
    if (merges_ == 0)
      return {
          .gap = 1,
          .pace = std::min(pace_for(call_s, all_wait ? first_all_wait_share : first_at_once_share),
                           pace_for(passed_s_, passed_at_once_share))};
    const double spare_s = spare_s_ + merge_share * calls * passed_per_call_s_;
    const double paid_after = spare_s >= 0 ? 0 : -spare_s / (merge_share * least_s);
    return {.gap = std::int32_t(std::clamp<double>(paid_after, plan_length, longest_epoch)),
            .pace = pace(call_s, plan_length)};
  }

  /// Charges an answered synchronisation.
  /// @param charged_s cost of the synchronisation before, on the most charged rank, by that rank's
  ///   clock
  /// @param slowdown by how much calls beside a synchronisation take longer, in calls
  void charge(std::int32_t pace, double charged_s, double slowdown) {
    const double before_s = all_cost_s_;
    if (charged_pace_ >= 0) {
      // One late rank must not stop the tuning: a single synchronisation counts at most four times
      // the usual cost.
      const bool at_once = charged_pace_ == 0;
      double& usual_s = at_once ? costs_.at_once_s : costs_.spread_s;
      const double others_s = at_once ? 0 : std::min(charged_s, others_spend_s_);
      const double held_up_s = at_once ? 0 : spread_calls_ * slowdown * mean_call_s_;
      const double cost_s = std::max(std::min(charged_s + others_s, 4 * usual_s), held_up_s);
      all_cost_s_ += cost_s - expected_cost_s_;
      // The first measurements have more weight, because the expected cost may be far off.
      usual_s += std::max(0.25, 1.0 / double(merges_)) * (cost_s - usual_s);
    }
    charged_pace_ = pace;
    expected_cost_s_ = cost_s(pace);
    all_cost_s_ += expected_cost_s_;
    if (account_) account_->spend(all_cost_s_ - before_s);
  }

  /// Plans the synchronisation after the one that is answered now, `reply_calls` before this answer
  /// is consumed: as soon as a context wants a plan, but as late as the cost requires.
  next_merge next(const merge_demand& demand, std::int32_t reply_calls, double now_s) {
    // Calls of different ranks may overlap, and the program may compute between calls.
    const double elapsed_s = std::min(demand.calls_s, now_s - answered_s_);
    calls_s_ += demand.calls_s;
    elapsed_s_ += elapsed_s;
    passed_per_call_s_ = elapsed_s / demand.calls;
    answered_s_ = now_s;
    mean_call_s_ = demand.call_s;
    double gap = demand.gap;
    // No tuned context was used: wait twice as long each time.
    if (gap == longest_epoch) gap = 2 * demand.calls;
    const std::int32_t next_pace = pace(demand.call_s, demand.shortest_plan);
    const double free_s = (free_merges - 1) * cost_s(next_pace) + demand.call_s;
    spare_s_ = free_s + merge_share * elapsed_s_ - all_cost_s_;
    if (account_) {
      account_->earn(elapsed_s);
      account_->allow(free_s, demand.longest_call_s);
    }
    if (spare_s_ < 0 && demand.call_s > 0) {
      // Seconds earned by each later call.
      const double earned_s = merge_share * demand.call_s * elapsed_s_ / calls_s_;
      gap = std::max(gap, -spare_s_ / earned_s - reply_calls);
    }
    ++merges_;
    const auto pause = std::int32_t(std::clamp(gap, 0.0, double(longest_epoch)));
    return {.gap = pause, .pace = next_pace, .samples = room_for(double(pause) + reply_calls)};
  }

 private:
  // The share of call time that synchronisations may cost, after a few free ones.
  static constexpr double merge_share = 0.01;
  static constexpr double free_merges = 4;
  // Limits, as shares of a call, for a synchronisation within one call. The first synchronisation
  // has a high limit, because an untried arm may run before it. The limit stays high while much is
  // unknown, and if the next plan is wanted before a spread synchronisation would bring it. While
  // much is unknown, calls may differ from predictions: the last share is of the time per call.
  static constexpr int early_merges = 12;
  static constexpr double first_at_once_share = 1, first_all_wait_share = 4,
                          early_at_once_share = 0.15, urgent_at_once_share = 0.5,
                          passed_at_once_share = 0.02;

  double cost_s(std::int32_t pace) const { return pace == 0 ? costs_.at_once_s : costs_.spread_s; }
  /// All at once if that costs at most `share` of a call.
  std::int32_t pace_for(double call_s, double share) const {
    return share > 0 && costs_.at_once_s <= share * call_s ? 0 : 1;
  }
  /// The pace of a synchronisation among calls that take `call_s`.
  std::int32_t pace(double call_s, int shortest_plan) const {
    const bool early = merges_ < early_merges, urgent = shortest_plan < spread_calls_;
    return std::min(pace_for(call_s, early    ? early_at_once_share
                                     : urgent ? urgent_at_once_share
                                              : 0),
                    pace_for(passed_s_, early ? passed_at_once_share : 0));
  }
  static std::int32_t room_for(double calls_between) {
    constexpr std::int32_t least = merge_report::min_samples;
    return calls_between <= least       ? least
           : calls_between <= 2 * least ? 2 * least
                                        : merge_report::max_samples;
  }

  account* account_;
  int spread_calls_;  // up the tree and down
  merge_costs costs_;
  double passed_s_;
  // A synchronisation that is spread over calls costs a message's sender and its receiver, one
  // after the other; the most charged rank knows one of the two costs. This is the most to add for
  // the other: a rank that is charged more has waited.
  double others_spend_s_;
  std::int64_t merges_ = 0;             // answered before
  double mean_call_s_ = 0;              // of the calls between the last two answers
  double passed_per_call_s_ = 0;        // elapsed time of these calls
  double all_cost_s_ = 0;               // as measured; the last one as expected
  std::int32_t charged_pace_ = -1;      // of the synchronisation before this one; -1: none
  double expected_cost_s_ = 0;          // of that synchronisation
  double spare_s_ = 0;                  // that synchronisations may still cost, at the last answer
  double calls_s_ = 0, elapsed_s_ = 0;  // calls with a plan: their sum, and the elapsed time
  double answered_s_ = -std::numeric_limits<double>::infinity();
};

}  // namespace railpass::select
