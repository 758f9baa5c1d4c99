// SPDX-License-Identifier: BSL-1.0
//
// When to merge next, and whether within one call: what merges have cost goes in, gap and pace come
// out. A few merges are free, then they may cost a share of the time spent in the calls.
#pragma once

#include "railpass/select/lockstep/account.hpp"
#include "railpass/select/lockstep/merge_costs.hpp"
#include "railpass/select/lockstep/merge_words.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace railpass::select {

/// What the calls since the last answer say of the next merge.
struct merge_demand {
  double calls = 1;                   ///< of the communicator
  double calls_s = 0;                 ///< those with a policy, in all
  double call_s = 0;                  ///< the same per call of the communicator
  double longest_call_s = 0;          ///< by the mean of its context
  double gap = longest_epoch;         ///< calls until the first context wants its next plan
  int shortest_plan = longest_epoch;  ///< in calls of its context
};

/// One that does not wait for what the last reply said of it.
struct hastened_merge {
  std::int32_t gap = longest_epoch;  ///< calls until it begins
  std::int32_t pace = 1;
};

class merge_pacing {
 public:
  /// `spread_height` is that of the tree of merges spread over calls; `passed_s`: how much time has
  /// passed per call so far, 0 if that is not known. What merges cost and what calls take goes to
  /// the account of the process, which outlives this; null: there is none.
  explicit merge_pacing(int spread_height, const merge_costs& costs = {}, double passed_s = 0,
                        account* of_process = nullptr)
      : account_(of_process),
        spread_calls_(2 * spread_height),
        costs_(costs),
        passed_s_(passed_s),
        others_spend_s_(costs.spread_s / 2) {}

  /// Of one merge that is spread over calls, as measured so far.
  double spread_cost_s() const { return costs_.spread_s; }
  /// Of all merges so far.
  double all_cost_s() const { return all_cost_s_; }
  /// How much of the calls' time went by while other calls were counted as well: a rank is in the
  /// next call while others still are in this one. In [0, 1]; what only some of the calls between
  /// two merges do is not seen where the program computes between others.
  double overlapped_share() const { return calls_s_ > 0 ? 1 - elapsed_s_ / calls_s_ : 0; }

  /// The merge before which a context begins whose calls are expected to take `call_s`, 0 if nobody
  /// can say, and at least `least_s`, and whose first plan is for so many of them, `calls` after
  /// the last answer: as soon as that plan is over and its calls have paid for what merges have
  /// cost too much. Where all else has settled the next one is far away, and was to be paid by
  /// calls that may be much shorter.
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

  /// A merge of this pace is answered. `charged_s` is what the one before it cost the rank for
  /// which that was the most, by its own clock, and `slowdown` by how much calls beside one take
  /// longer, in calls.
  void charge(std::int32_t pace, double charged_s, double slowdown) {
    const double before_s = all_cost_s_;
    if (charged_pace_ >= 0) {
      // One late rank must not silence the learning: a single merge counts four times the usual.
      const bool at_once = charged_pace_ == 0;
      double& usual_s = at_once ? costs_.at_once_s : costs_.spread_s;
      const double others_s = at_once ? 0 : std::min(charged_s, others_spend_s_);
      const double held_up_s = at_once ? 0 : spread_calls_ * slowdown * mean_call_s_;
      const double cost_s = std::max(std::min(charged_s + others_s, 4 * usual_s), held_up_s);
      all_cost_s_ += cost_s - expected_cost_s_;
      // The first ones count more: what was expected may be far off.
      usual_s += std::max(0.25, 1.0 / double(merges_)) * (cost_s - usual_s);
    }
    charged_pace_ = pace;
    expected_cost_s_ = cost_s(pace);
    all_cost_s_ += expected_cost_s_;
    if (account_) account_->spend(all_cost_s_ - before_s);
  }

  /// The merge after the one that is answered now, `reply_calls` before it is consumed: as soon as
  /// a context wants a plan, as late as the cost of merging asks.
  next_merge next(const merge_demand& demand, std::int32_t reply_calls, double now_s) {
    // Calls of different ranks may overlap, and the program may compute between them.
    const double elapsed_s = std::min(demand.calls_s, now_s - answered_s_);
    calls_s_ += demand.calls_s;
    elapsed_s_ += elapsed_s;
    passed_per_call_s_ = elapsed_s / demand.calls;
    answered_s_ = now_s;
    mean_call_s_ = demand.call_s;
    double gap = demand.gap;
    // No tuned context was used: look again later, ever later.
    if (gap == longest_epoch) gap = 2 * demand.calls;
    const std::int32_t next_pace = pace(demand.call_s, demand.shortest_plan);
    const double free_s = (free_merges - 1) * cost_s(next_pace) + demand.call_s;
    spare_s_ = free_s + merge_share * elapsed_s_ - all_cost_s_;
    if (account_) {
      account_->earn(elapsed_s);
      account_->allow(free_s, demand.longest_call_s);
    }
    if (spare_s_ < 0 && demand.call_s > 0) {
      // By each call to come.
      const double earned_s = merge_share * demand.call_s * elapsed_s_ / calls_s_;
      gap = std::max(gap, -spare_s_ / earned_s - reply_calls);
    }
    ++merges_;
    const auto pause = std::int32_t(std::clamp(gap, 0.0, double(longest_epoch)));
    return {.gap = pause, .pace = next_pace, .samples = room_for(double(pause) + reply_calls)};
  }

 private:
  // What merging may cost: so much of the time spent in the calls, after a few free ones.
  static constexpr double merge_share = 0.01;
  static constexpr double free_merges = 4;
  // Within one call only where that costs no more than so much of a call: the first merge, before
  // which an arm may be played that nobody has tried; while much is to be learnt; and where the
  // next plan is wanted sooner than it would come otherwise. While much is to be learnt, calls may
  // be nothing like their predictions: then also where it costs so much of what passed per call.
  static constexpr int early_merges = 12;
  static constexpr double first_at_once_share = 1, first_all_wait_share = 4,
                          early_at_once_share = 0.15, urgent_at_once_share = 0.5,
                          passed_at_once_share = 0.02;

  double cost_s(std::int32_t pace) const { return pace == 0 ? costs_.at_once_s : costs_.spread_s; }
  /// All at once where that costs no more than `share` of a call.
  std::int32_t pace_for(double call_s, double share) const {
    return share > 0 && costs_.at_once_s <= share * call_s ? 0 : 1;
  }
  /// Of a merge among calls that take `call_s`.
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
  int spread_calls_;  // up the tree and down again
  merge_costs costs_;
  double passed_s_;
  // Spread over calls, a message costs its sender and its receiver, one after the other; the rank
  // that spends the most knows of one of them. At most so much more: a rank that is charged more
  // has waited.
  double others_spend_s_;
  std::int64_t merges_ = 0;             // answered before
  double mean_call_s_ = 0;              // of the calls between the last two answers
  double passed_per_call_s_ = 0;        // the same: what went by in them
  double all_cost_s_ = 0;               // as measured, of the last one as expected
  std::int32_t charged_pace_ = -1;      // of the merge before this one; -1: there was none
  double expected_cost_s_ = 0;          // the same
  double spare_s_ = 0;                  // that merges may still cost, at the last answer
  double calls_s_ = 0, elapsed_s_ = 0;  // calls with a plan: their sum, and what passed in them
  double answered_s_ = -std::numeric_limits<double>::infinity();
};

}  // namespace railpass::select
