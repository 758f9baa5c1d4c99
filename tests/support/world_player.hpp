// SPDX-License-Identifier: BSL-1.0
//
// Runs a policy in a world, through the lockstep with its synchronisations and delays, and judges
// it by the world's mean times: gains and losses against native, the final arm, and the estimates.
#pragma once

#include "railpass/select/lockstep/lockstep.hpp"
#include "support/worlds.hpp"

#include <deque>
#include <functional>
#include <memory>

namespace railpass::test {

using policy_maker = std::function<std::unique_ptr<select::policy>(select::policy_input)>;

/// Results over all noise. Excesses are in native calls of a quiet world.
struct verdict {
  double excess = 0;          ///< mean time over 1.03 times native, at the call at which ...
  double allowed = 0;         ///< ... it exceeds the allowed value by the most
  double settled_within = 0;  ///< time of the final arm over native's: the mean of the worst cases
  double settled_allowed = 0;
  bool believed_ok = true;  ///< estimates lie among the last measurements
  bool attentive = true;    ///< the arm in use is compared with native between calls n and 2 n
  double gain = 1;          ///< total of native over that of the policy
};

/// The bounds for every policy in every world.
struct bounds {
  static constexpr double free_share = 0.03;
  static constexpr double loss = 60, loss_with_traps = 150, dear_merges = 10, dear_merge = 3;
  static constexpr double calls_to_notice = 30;
  static constexpr std::int64_t settled_calls = 3000, settled_epochs = 30;
  static constexpr double settled = 1.05, settled_noisy = 1.15, noisy = 0.2;
  static constexpr std::size_t believed_samples = 5;
  static constexpr std::int64_t first_calls = 64;  // in which nothing need be met again

  static double loss_in(const world& w) {
    const double merge = w.merge_s / w.native_s;
    return (w.has_traps ? loss_with_traps : loss) + (merge > dear_merge ? dear_merges * merge : 0);
  }
};

namespace detail {

/// Forwards calls to a policy, and checks the estimates against the observations.
class witness final : public select::policy {
 public:
  witness(std::unique_ptr<select::policy> inner, std::size_t arms, bool& believed_ok)
      : inner_(std::move(inner)), last_(arms), believed_ok_(believed_ok) {}

  void learn(const select::arm_book& book) override {
    inner_->learn(book);
    for (const select::observation& o : book.merged()) {
      std::deque<double>& last = last_[std::size_t(o.arm)];
      last.push_back(o.seconds);
      if (last.size() > bounds::believed_samples) last.pop_front();
    }
    for (std::size_t a = 0; a < last_.size(); ++a) {
      const std::deque<double>& last = last_[a];
      if (last.size() < bounds::believed_samples) continue;
      const auto believed = inner_->posterior(int(a));
      const auto [least, most] = std::ranges::minmax(last);
      if (!believed || believed->mean_s < least / 2 * (1 - 1e-9) ||
          believed->mean_s > most * 2 * (1 + 1e-9))
        believed_ok_ = false;
    }
  }
  select::epoch_plan plan(const select::planning_input& now) override { return inner_->plan(now); }
  std::span<const select::arm_prior> arms() const override { return inner_->arms(); }
  std::vector<double> probabilities() const override { return inner_->probabilities(); }
  std::optional<select::time_estimate> posterior(int arm) const override {
    return inner_->posterior(arm);
  }
  std::string reason() const override { return inner_->reason(); }

 private:
  std::unique_ptr<select::policy> inner_;
  std::vector<std::deque<double>> last_;
  bool& believed_ok_;
};

}  // namespace detail

namespace detail {

/// Makes the steps of synchronisations that are due before a call; returns their cost for the call.
/// Calls `merged` after each synchronisation.
template <class Merged>
double make_merges(select::lockstep& steps, const world& w, double now_s, const Merged& merged) {
  double extra_s = 0;
  if (!steps.begin_call()) return extra_s;
  steps.begin_steps(now_s);
  bool begins = false;
  while (steps.due() != select::merge_step::none) {
    begins = begins || steps.due() == select::merge_step::post;
    if (!steps.step_alone()) continue;
    extra_s += std::exchange(begins, false) ? w.merge_at_once_s : w.merge_s;
    merged();
  }
  steps.end_steps(now_s + extra_s);
  return extra_s;
}

}  // namespace detail

/// Plays `noises` lives of the context, each with its own noise and policy seed. `log`, if any,
/// receives each call's arm.
inline verdict play(const world& w, const policy_maker& make, int noises = 20,
                    const std::function<void(std::int64_t, const select::timed_call&,
                                             const select::lockstep&)>& log = {}) {
  const auto calls = std::size_t(w.calls);
  // For each call, over all noise, in native calls: the time beyond the free share, and the
  // allowance for changes from there on.
  std::vector<float> excess(calls, 0), change(calls, 0);
  verdict v;
  double total_s = 0, native_total_s = 0, worst = 0;
  for (int n = 1; n <= noises; ++n) {
    const auto noise = std::uint64_t(n);
    select::lockstep steps({}, 0, w.num_ranks);
    steps.expect({.spread_s = w.merge_s, .at_once_s = w.merge_at_once_s});
    const select::context_key key{.op = collective::broadcast, .size_class = 10};
    double now_s = 0, before_s = 0, in_use_before = 1, in_use_before_s = w.native_s, worst_here = 0;
    int arm_before = select::native_arm;
    std::int64_t changed_at = 0, last_merge = 0, met_native = bounds::first_calls;
    std::int64_t epochs_since = 0;
    std::vector<std::pair<std::size_t, double>> slower;  // since the last merge: call, T - 1
    for (std::size_t i = 0; i < calls; ++i) {
      const auto call = std::int64_t(i);
      double extra_s = detail::make_merges(steps, w, now_s, [&] {
        ++epochs_since;
        for (const auto& [at, times] : slower)
          change[at] += float(times * (double(call - last_merge) + bounds::calls_to_notice));
        slower.clear();
        last_merge = call;
      });
      select::timed_call c = steps.next_call(key);
      if (c.needs_first_plan) {
        extra_s += w.first_plan_s;
        steps.adopt(c.context, steps.lead(c.context, std::make_unique<detail::witness>(
                                                         make({.priors = w.priors, .seed = noise}),
                                                         w.priors.size(), v.believed_ok)));
        c = steps.next_call(key);
      }
      const double native_s = w.mean_s(select::native_arm, call), own_s = w.mean_s(c.arm, call);
      if (c.timed) steps.record(c, w.draw_s(c.arm, call, before_s, noise));
      if (log) log(call, c, steps);
      before_s = own_s;
      now_s += extra_s + own_s;
      total_s += extra_s + own_s;
      native_total_s += native_s;
      excess[i] += float((extra_s + own_s - (1 + bounds::free_share) * native_s) / w.native_s);

      const int in_use = steps.incumbent(c.context);
      const double in_use_s = w.mean_s(in_use, call), ratio = in_use_s / native_s;
      const double slowed = std::max(in_use_s / in_use_before_s, ratio / in_use_before);
      if (in_use == arm_before && slowed > 1 + 1e-9) slower.emplace_back(i, slowed - 1);
      if (w.changes_at(call)) changed_at = call, epochs_since = 0;
      if (call - changed_at >= bounds::settled_calls && epochs_since >= bounds::settled_epochs)
        worst_here = std::max(worst_here, ratio);
      arm_before = in_use;
      in_use_before = ratio;
      in_use_before_s = in_use_s;
      if (in_use == select::native_arm || c.arm == select::native_arm)
        met_native = std::max(met_native, call);
      v.attentive = v.attentive && call <= 2 * met_native;
    }
    for (const auto& [at, times] : slower)
      change[at] += float(times * (double(w.calls - last_merge) + bounds::calls_to_notice));
    worst += worst_here / noises;
  }
  double lost = 0, allowed = bounds::loss_in(w), furthest = -1e300;
  for (std::size_t i = 0; i < calls; ++i) {
    lost += double(excess[i]) / noises;
    allowed += double(change[i]) / noises;
    if (lost - allowed <= furthest) continue;
    furthest = lost - allowed;
    v.excess = lost;
    v.allowed = allowed;
  }
  v.settled_within = worst;
  v.settled_allowed = w.largest_noise > bounds::noisy ? bounds::settled_noisy : bounds::settled;
  v.gain = native_total_s / total_s;
  return v;
}

}  // namespace railpass::test
