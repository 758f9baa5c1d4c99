// SPDX-License-Identifier: BSL-1.0
//
// The base of all policies with a belief: it selects the active arms, the incumbent and the length
// of epochs. Derived policies decide which arms to try.
#pragma once

#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/select/belief/belief.hpp"
#include "railpass/select/policy/policy.hpp"
#include "railpass/select/policy/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass::select {

namespace detail {

/// Removes arms whose segments are at least as long as the message, because they do the same as the
/// arm without segments.
inline std::vector<arm_prior> distinct(std::vector<arm_prior> priors) {
  std::vector<arm_prior> result;
  const auto is_known = [&](const arm_prior& p) {
    return std::ranges::any_of(result, [&](const arm_prior& q) {
      return !q.native && p.family == q.family && p.log_seconds == q.log_seconds &&
             q.log2_segment == 24;
    });
  };
  for (arm_prior& p : priors)
    if (p.native || !p.one_segment || !is_known(p)) result.push_back(std::move(p));
  result.shrink_to_fit();
  return result;
}

/// All arms in the order of attention, as indices in `priors`: native, then the other arms by
/// predicted time.
inline std::vector<int> ranked_arms(std::span<const arm_prior> priors) {
  std::vector<int> order;
  std::vector<int> result;
  for (int i = 0; i < int(priors.size()); ++i) {
    if (priors[std::size_t(i)].native)
      result.push_back(i);
    else
      order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return priors[std::size_t(a)].log_seconds < priors[std::size_t(b)].log_seconds;
  });
  result.insert(result.end(), order.begin(), order.end());
  return result;
}

/// Ranks unknown versions as belief estimates them: after good known versions and before
/// bad ones.
inline std::vector<arm_prior> ranked(std::vector<arm_prior> priors) {
  const arm_prior* best = nullptr;
  for (const arm_prior& p : priors)
    if (!p.measured_only && (!best || p.log_seconds < best->log_seconds)) best = &p;
  const double unknown = best ? best->log_seconds + belief::unpredicted_lag : 0;
  for (arm_prior& p : priors)
    if (p.measured_only && !p.native) p.log_seconds = unknown + p.lag;
  return priors;
}

}  // namespace detail

class belief_policy : public policy {
 public:
  static constexpr std::size_t max_active = 24;  // besides native

  explicit belief_policy(policy_input input)
      : baseline_(std::move(input.baseline)),
        priors_(detail::distinct(detail::ranked(std::move(input.priors)))),
        active_(detail::ranked_arms(priors_)),
        outsiders_(cut_off(active_)),
        random_(input.seed),
        belief_(selected(priors_, active_)) {
    const auto native = std::find_if(active_.begin(), active_.end(),
                                     [&](int i) { return priors_[std::size_t(i)].native; });
    if (native == active_.end()) throw error("policy: expected a native arm among the arms");
    native_ = int(native - active_.begin());
    incumbent_ = native_;
  }

  void learn(const arm_book& book) override {
    book_ = &book;
    for (const observation& o : book.merged())
      if (index_of(o.arm) < 0) consider(o);
    belief_.learn(book, incumbent_);
    if (belief_.changed()) {
      change_epoch_ = epoch_ + 1;
      spent_ = std::min(spent_, budget_share() * double(book.calls()));
    }
  }

  std::span<const arm_prior> arms() const override { return priors_; }

  std::optional<time_estimate> posterior(int arm) const override {
    if (const int a = index_of(arm); a >= 0) {
      if (active_prior(a).measured_only && belief_.samples(a) == 0) return std::nullopt;
      return time_estimate{std::exp(belief_.expected(a)), std::sqrt(belief_.variance(a))};
    }
    for (const arm_prior& p : priors_)
      if (p.arm == arm && !p.measured_only)
        return time_estimate{std::exp(p.log_seconds + p.spread * p.spread / 2), p.spread};
    return std::nullopt;
  }

  std::string reason() const override {
    char text[256];
    const auto seconds = [&](int a) { return format_seconds(std::exp(belief_.expected(a))); };
    const auto percent = [](double z) { return 50 * std::erfc(-z / std::numbers::sqrt2); };
    const int best_rival = rival();
    if (active_.size() == 1) return "no other arm is eligible";
    if (incumbent_ == native_) {
      std::snprintf(text, sizeof text,
                    " at %s stays until another arm is faster with %.0f %% confidence; the best "
                    "other arm is estimated at %s (%.0f %% sure to be faster)",
                    seconds(native_).c_str(), percent(confident), seconds(best_rival).c_str(),
                    percent(belief_.lead(best_rival, native_)));
      return baseline_ + text;
    }
    // Only pairs show the gain (pairs.hpp).
    const auto estimate = [&](int a) {
      std::snprintf(text, sizeof text, " at %s (x/%.2f) after %lld", seconds(a).c_str(),
                    std::exp(std::sqrt(belief_.variance(a))),
                    static_cast<long long>(belief_.samples(a)));
      return std::string(text);
    };
    return "estimated" + estimate(incumbent_) + " samples, " + baseline_ + estimate(native_);
  }

 protected:
  /// An arm outside the belief.
  struct outsider {
    int position = 0;        ///< in arms()
    double log_seconds = 0;  ///< from its latest samples; before the first one, the prediction
    bool measured = false;
  };

  /// Native is replaced by an arm that is cheaper by this many standard deviations.
  static constexpr double confident = 0.7;
  /// Predictions off by more than this (in the logarithm: 2.2 times) are wrong.
  static constexpr double misfit = 0.8;
  /// Cost of an arm's first call beyond its prediction, until some arms were tried.
  static constexpr double first_risk = 2.4;

  const belief& beliefs() const { return belief_; }
  std::span<const outsider> outsiders() const { return outsiders_; }
  /// An arm's times in this run, by position in arms(); null: no sample.
  const arm_times* times_of(int position) const {
    return book_ ? book_->find(priors_[std::size_t(position)].arm) : nullptr;
  }
  /// Call at which an arm was last seen, by position in arms(); 0: never.
  std::int64_t last_seen(int position) const {
    const arm_times* const times = times_of(position);
    return times ? times->last_seen : 0;
  }
  /// ln of the expected time of an outsider's call if predictions are off by `error`.
  double expected(const outsider& o, double error) const {
    return o.measured ? o.log_seconds : priors_[std::size_t(o.position)].log_seconds + error;
  }
  int num_active() const { return int(active_.size()); }
  int native() const { return native_; }
  int incumbent() const { return incumbent_; }
  int number_of(int a) const { return active_prior(a).arm; }
  int position_of(int a) const { return active_[std::size_t(a)]; }  ///< in arms()
  const arm_prior& active_prior(int a) const {
    return priors_[std::size_t(active_[std::size_t(a)])];
  }
  random_stream& random() { return random_; }
  int epochs_since_change() const { return epoch_ - change_epoch_; }
  bool has_changed() const { return change_epoch_ > 0; }
  /// The uncertainty of the priors: 1 if the predictions come from a model.
  double doubt() const {
    constexpr double of_a_model = 0.35;  // spread
    return belief_.prior_spread() / of_a_model;
  }
  /// The share of calls that exploration may cost in the long run.
  double budget_share() const { return 0.012 * doubt(); }
  double& spent() { return spent_; }

  /// Index among the active arms, or -1.
  int index_of(int arm) const {
    for (int a = 0; a < num_active(); ++a)
      if (number_of(a) == arm) return a;
    return -1;
  }

  /// Starts an epoch with the cheapest arm in expectation, or native as long as that arm is not
  /// clear. Returns whether to time native now.
  bool choose_incumbent() {
    ++epoch_;
    // If predictions are far off, only measurements of this run count. Predictions of other arms do
    // not count, nor does an earlier measurement of native, unless even that is slower.
    const bool sound = predictions_hold();
    if (!sound && belief_.samples(native_) == 0) {
      const int measured = cheapest_measured();
      const arm_prior& earlier = active_prior(native_);
      const bool slower = !earlier.measured_only && earlier.log_seconds > belief_.mean(measured);
      incumbent_ = slower ? measured : native_;
      return true;
    }
    const int best = sound ? cheapest_to_play() : cheapest_measured();
    if (best == native_) {
      incumbent_ = native_;
      return false;
    }
    // For very short calls only measurements of both arms count, of this run or of the same earlier
    // runs.
    const bool measured_here = !is_native_doubtful() && belief_.samples(best) > 0;
    if (is_short(best) && !measured_here && !were_measured_before(best)) {
      incumbent_ = native_;
      return false;
    }
    const arm_prior& p = active_prior(best);
    const arm_prior& known = active_prior(native_);
    const bool unmeasured =
        belief_.samples(native_) == 0 && (known.measured_only || known.spread > trusted_spread);
    if (unmeasured && p.spread <= trusted_spread && !p.measured_only) {
      incumbent_ = best;
      return true;
    }
    const bool was_so_before = p.remembered && belief_.samples(native_) == 0;
    const double needed = incumbent_ == native_ && !was_so_before ? confident : confident / 3;
    incumbent_ = belief_.lead(best, native_) >= needed ? best : native_;
    return false;
  }

  /// Whether the measured arms took about their predicted times (by the median).
  bool predictions_hold() const { return std::abs(prediction_error()) <= misfit; }
  /// Median over the measured arms, of the logarithm.
  double prediction_error() const {
    std::vector<double> errors;
    for (int a = 0; a < num_active(); ++a)
      if (const arm_prior& p = active_prior(a); belief_.samples(a) > 0 && !p.native)
        errors.push_back(belief_.mean(a) - p.log_seconds);
    return errors.empty() ? 0 : median(errors);
  }
  /// The expected cost of an arm's first call beyond its prediction, in such calls. Some arms take
  /// many times their prediction; the more arms were tried, the fewer such arms remain.
  double risk_of_a_first_call() const {
    double tried = 0;
    for (int a = 0; a < num_active(); ++a) {
      const arm_prior& p = active_prior(a);
      if (!p.native && last_seen(position_of(a)) > 0) ++tried;
    }
    return first_risk / (1 + tried / 5);
  }
  /// Whether the arm's time is known from calls of this run or an earlier run.
  bool is_proven(int a) const {
    const arm_prior& p = active_prior(a);
    return belief_.samples(a) > 0 || p.remembered || (a == native_ && !p.measured_only);
  }
  /// Native's first calls, cold and next to synchronisations, may take a hundred times the usual
  /// time. A few samples count only if an earlier run has measured about the same.
  bool is_native_doubtful() const {
    const arm_prior& earlier = active_prior(native_);
    const bool agrees = !earlier.measured_only && belief_.samples(native_) > 0 &&
                        belief_.mean(native_) - earlier.log_seconds <= misfit;
    return belief_.samples(native_) < proven_samples && !agrees;
  }
  /// Whether an earlier run measured native and an arm much like this one, and native's times in
  /// this run do not contradict it.
  bool were_measured_before(int a) const {
    return !active_prior(native_).measured_only &&
           active_prior(a).spread <= belief::measured_spread &&
           (belief_.samples(native_) == 0 || !is_native_doubtful());
  }
  bool is_short(int a) const { return std::exp(belief_.expected(a)) < belief::short_call_s; }
  /// The cheapest arm. Once other arms were measured, an unmeasured arm must be so much cheaper
  /// that it is worth the risk.
  int cheapest_to_play() const {
    const int best = belief_.cheapest();
    bool tried = false;
    int proven = best;
    for (int a = 0; a < num_active(); ++a) {
      if (!is_proven(a)) continue;
      tried = tried || a != native_;
      if (!is_proven(proven) || belief_.expected(a) < belief_.expected(proven)) proven = a;
    }
    const double lead = belief_.expected(proven) - belief_.expected(best);
    return tried && lead < std::log1p(risk_of_a_first_call()) ? proven : best;
  }
  /// The cheapest measured arm; native if there is none.
  int cheapest_measured() const {
    int best = native_;
    for (int a = 0; a < num_active(); ++a)
      if (belief_.samples(a) > 0 && belief_.expected(a) < belief_.expected(best)) best = a;
    return best;
  }

  /// Whether the arm in use takes as long as in an earlier run of the context.
  bool is_incumbent_as_before() const {
    return is_as_before(active_prior(incumbent_), times_of(position_of(incumbent_)));
  }

  /// Calls of an epoch while much is unknown, and the most calls of an epoch. The limit grows with
  /// the calls, so that synchronisations become ever rarer.
  double early_length() const {
    return first_length * std::pow(1.25, std::min(64, epochs_since_change()));
  }
  double longest_length(const planning_input& now) const {
    // An unmeasured incumbent is checked before it can do much harm.
    if (incumbent_ != native_ && belief_.samples(incumbent_) == 0) return 3;
    const double kappa = now.merge_cost_s / std::exp(belief_.expected(incumbent_));
    // Arms as fast as in earlier runs are checked more rarely.
    const double usual = is_incumbent_as_before()
                             ? std::max(2 * kappa / merge_share, shortest_as_before)
                             : std::max(kappa / merge_share, shortest_usual);
    return std::min(std::max(usual, double(now.calls) / 100),
                    usual * std::pow(2.0, std::min(30, epochs_since_change())));
  }
  static constexpr double merge_share = 0.01;  // of the time, at most
  static constexpr double first_length = 2, shortest_usual = 8, shortest_as_before = 128;  // calls
  static constexpr std::int64_t proven_samples = 4;

  /// About 16 timed calls of the incumbent per epoch are enough.
  static int stride_for(double length) { return int(std::clamp(length / 16, 1.0, 64.0)); }

  /// Spreads the tried arms (positions in arms()) over the epoch in random order.
  epoch_plan shuffled(const std::vector<int>& explore, int length, int stride) {
    epoch_plan p{.incumbent = number_of(incumbent_), .length = length, .timed_stride = stride};
    std::vector<int> calls(explore);
    calls.resize(std::size_t(std::max(length, int(explore.size()))), -1);
    random_.shuffle(calls);
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (calls[i] >= 0) p.explore.push_back({int(i), priors_[std::size_t(calls[i])].arm});
    return p;
  }

  /// The cheapest arm except for the incumbent.
  int rival() const {
    int best = -1;
    for (int a = 0; a < num_active(); ++a)
      if (a != incumbent_ && (best < 0 || belief_.expected(a) < belief_.expected(best))) best = a;
    return std::max(best, 0);
  }

  /// In the order of arms(), from values by active index.
  std::vector<double> by_arm(std::span<const double> of_active) const {
    std::vector<double> result(priors_.size());
    for (int a = 0; a < num_active(); ++a)
      result[std::size_t(active_[std::size_t(a)])] = of_active[std::size_t(a)];
    return result;
  }

 private:
  static std::vector<outsider> cut_off(std::vector<int>& ranked) {
    std::vector<outsider> result;
    while (ranked.size() > max_active + 1) {
      result.push_back({.position = ranked.back()});
      ranked.pop_back();
    }
    return result;
  }

  /// Considers a measured outsider. An outsider faster than the incumbent replaces the slowest
  /// active arm.
  void consider(const observation& o) {
    const auto one = std::find_if(outsiders_.begin(), outsiders_.end(), [&](const outsider& x) {
      return priors_[std::size_t(x.position)].arm == o.arm;
    });
    if (one == outsiders_.end()) return;
    // A single slow call may be an outlier.
    const double before = expected(*one, prediction_error());
    one->log_seconds = std::min(std::log(o.seconds), before + doubling);
    one->measured = true;
    if (one->log_seconds >= belief_.mean(incumbent_)) return;
    int slowest = -1;
    for (int a = 0; a < num_active(); ++a)
      if (a != native_ && a != incumbent_ &&
          (slowest < 0 || belief_.expected(a) > belief_.expected(slowest)))
        slowest = a;
    if (slowest < 0) return;
    arm_prior mine = priors_[std::size_t(one->position)];
    mine.log_seconds = before;  // this sample is learnt like any other
    mine.spread = belief_.prior_spread();
    *one = {.position = std::exchange(active_[std::size_t(slowest)], one->position),
            .log_seconds = belief_.mean(slowest),
            .measured = belief_.samples(slowest) > 0};
    belief_.replace(slowest, mine);
  }
  static constexpr double doubling = 0.7;  // of the logarithm

  static std::vector<arm_prior> selected(std::span<const arm_prior> priors,
                                         std::span<const int> indices) {
    std::vector<arm_prior> result;
    for (const int i : indices) result.push_back(priors[std::size_t(i)]);
    return result;
  }

  std::string baseline_;
  std::vector<arm_prior> priors_;
  std::vector<int> active_;
  std::vector<outsider> outsiders_;
  random_stream random_;
  belief belief_;
  int native_ = 0;
  int incumbent_ = 0;
  int epoch_ = -1, change_epoch_ = 0;  // plans made; the first plan after a change
  const arm_book* book_ = nullptr;     // null: nothing is learnt yet
  double spent_ = 0;                   // exploration, in calls of the incumbent
};

}  // namespace railpass::select
