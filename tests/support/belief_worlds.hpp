// SPDX-License-Identifier: BSL-1.0
//
// Worlds in which what a policy believes is wrong at first, or stops being right: predictions that
// are off together or one by one, calls that are slow in bursts, machines that change. The mean
// over all calls judges, bursts included. belief_world draws one from a family and a seed; worlds
// of one seed and different families share all that their families do not change.
#pragma once

#include "support/worlds.hpp"

namespace railpass::test {

inline constexpr std::array belief_families{"predictions right",
                                            "all predicted 20 times too slow",
                                            "all predicted 20 times too fast",
                                            "all off by one factor",
                                            "each off by up to 100",
                                            "a good arm hidden",
                                            "bursts of native",
                                            "bursts of arms",
                                            "drift",
                                            "regimes by time",
                                            "a slow rank",
                                            "native warms up",
                                            "300 near ties",
                                            "40 contexts in turns",
                                            "5 calls a day",
                                            "coarse clock"};

class belief_world final : public world {
 public:
  belief_world(std::size_t family_number, std::uint64_t seed);

  /// Call n is of context n % num_contexts().
  int num_contexts() const { return int(contexts_.size()); }
  std::span<const select::arm_prior> priors_of(int context) const {
    return contexts_[std::size_t(context)].priors;
  }

  double mean_s(int arm, std::int64_t call) const override {
    const one_context& c = contexts_[std::size_t(call % num_contexts())];
    const one_arm& a = c.arms[std::size_t(arm)];
    double ratio = a.mean;
    if (a.burst_share > 0 && drawn(1 + std::uint64_t(arm), call / burst_calls_) < a.burst_share)
      ratio *= burst_factor;
    if (regime_calls_ > 0 && call / regime_calls_ % 2 == 1) ratio *= a.in_other_regime;
    if (is("drift")) ratio *= std::exp(drifted(double(call) + a.phase));
    if (is("native warms up") && arm == 0 && call < warm_up_calls_) ratio *= warm_up_factor_;
    if (is("5 calls a day"))
      ratio *= std::exp(0.4 * (2 * drawn(0, call / 5) - 1) +
                        0.15 * (2 * drawn(1 + std::uint64_t(arm), call / 5) - 1));
    return native_s * ratio;
  }

  double draw_s(int arm, std::int64_t call, double, std::uint64_t noise) const override {
    select::random_stream r(noise * 0x9e3779b97f4a7c15u + std::uint64_t(call) * 512 +
                            std::uint64_t(arm));
    const double z = largest_noise * r.normal() - 0.5 * largest_noise * largest_noise;
    const double seconds = mean_s(arm, call) * std::exp(z);
    return tick_s_ > 0 ? tick_s_ * std::floor(seconds / tick_s_ + r.uniform()) : seconds;
  }

  bool changes_at(std::int64_t) const override { return false; }

  /// What it costs beyond native to try each arm once, as a share of native's time.
  double price_of_trying_all() const {
    double beyond = 0, all = 0;
    for (int c = 0; c < num_contexts(); ++c)
      for (int a = 0; a < int(priors_of(c).size()); ++a)
        beyond += std::max(0.0, mean_s(a, c) - mean_s(0, c)) / native_s;
    for (std::int64_t call = 0; call < calls; ++call) all += mean_s(0, call) / native_s;
    return beyond / all;
  }

 private:
  static constexpr double burst_factor = 10;

  struct one_arm {
    double mean = 1;  // in native's
    double burst_share = 0;
    double in_other_regime = 1;
    double phase = 0;  // of the drift, in calls
  };
  struct one_context {
    std::vector<one_arm> arms;
    std::vector<select::arm_prior> priors;
  };

  bool is(std::string_view name) const { return family == name; }
  /// In [0, 1), of a number and a stretch of calls.
  double drawn(std::uint64_t number, std::int64_t stretch) const {
    return select::random_stream(seed_ * 0xd1342543de82ef95u + number * 1000003 +
                                 std::uint64_t(stretch))
        .uniform();
  }
  /// By 0.1 % from call to call, up and down between twice and half.
  static double drifted(double call) {
    constexpr double per_call = 0.001, most = 0.7;
    const double at = std::fmod(per_call * call, 4 * most);
    return at < 2 * most ? at - most : 3 * most - at;
  }
  one_context drawn_context(select::random_stream& r) const;
  void hide_an_arm(select::random_stream& r, one_context& c) const;

  std::uint64_t seed_;
  std::vector<one_context> contexts_;
  std::int64_t burst_calls_ = 1, regime_calls_ = 0, warm_up_calls_ = 0;
  double warm_up_factor_ = 1, tick_s_ = 0;
  double factor_ = 1;  // of all predictions
};

inline belief_world::belief_world(std::size_t family_number, std::uint64_t seed) : seed_(seed) {
  using detail::between, detail::log_between;
  family = belief_families[family_number];
  select::random_stream r(seed * 0xd1342543de82ef95u + 1);
  calls = 10000;
  num_ranks = 1 << (1 + r.below(7));
  native_s = log_between(r, 2e-6, 1e-2);
  const double tick = log_between(r, 1e-6, 1e-5), ticks = log_between(r, 1, 20);
  if (is("coarse clock")) tick_s_ = tick, native_s = tick * ticks;
  largest_noise = log_between(r, 0.03, 0.3);
  merge_s = native_s * log_between(r, 0.02, 0.5);
  merge_at_once_s = merge_s * between(r, 1, 3);
  first_plan_s = 0.5 * native_s;
  burst_calls_ = std::int64_t(log_between(r, 5, 50));
  const double any_factor = log_between(r, 0.01, 100), period = log_between(r, 300, 3000),
               warm_up = log_between(r, 10, 200);
  warm_up_factor_ = log_between(r, 2, 20);
  warm_up_calls_ = std::int64_t(warm_up);
  if (is("all predicted 20 times too slow")) factor_ = 20;
  if (is("all predicted 20 times too fast")) factor_ = 1 / 20.0;
  if (is("all off by one factor")) factor_ = any_factor;
  if (is("regimes by time")) regime_calls_ = std::int64_t(period);
  const int contexts = is("40 contexts in turns") ? 40 : 1;
  for (int c = 0; c < contexts; ++c) contexts_.push_back(drawn_context(r));
  priors = contexts_.front().priors;
}

inline belief_world::one_context belief_world::drawn_context(select::random_stream& r) const {
  using detail::between, detail::log_between;
  one_context c;
  const bool ties = is("300 near ties");
  const double usual = log_between(r, 3, 60);
  const std::size_t arms = 1 + (ties ? 300 : std::size_t(usual));
  const double typical = between(r, 0, 0.6), error = between(r, 0.15, 0.35);
  const bool native_is_known = r.uniform() < 0.5;
  c.arms.resize(arms);
  c.priors.resize(arms);
  c.priors[0] = {.arm = 0, .native = true, .measured_only = true};
  if (native_is_known)
    c.priors[0] = {.arm = 0,
                   .log_seconds = std::log(native_s * factor_) + 0.15 * r.normal(),
                   .spread = 0.2,
                   .native = true};
  int number = 0, left = 0;
  double of_family = 0, slowed = 1;
  for (std::size_t a = 1; a < arms; ++a) {
    if (left-- == 0) {
      ++number;
      left = r.below(8);
      of_family = typical + 0.3 * r.normal();
      slowed = between(r, 1, 3);
    }
    one_arm& one = c.arms[a];
    one.mean = std::exp(std::clamp(of_family + 0.15 * r.normal(), -1.6, 1.6));
    if (ties) one.mean = between(r, 0.78, 0.82);
    const double off =
        is("each off by up to 100") ? std::log(100) * between(r, -1, 1) : error * r.normal();
    c.priors[a] = {.arm = int(a),
                   .log_seconds = std::log(native_s * one.mean * factor_) + off,
                   .spread = error,
                   .family = number,
                   .log2_segment = left > 0 ? 10.0 + left : 24.0};
    one.in_other_regime = log_between(r, 0.4, 2.5);
    one.phase = between(r, 0, 2800);
    if (is("a slow rank")) one.mean *= slowed;
    if (is("bursts of arms") && r.uniform() < 0.5) one.burst_share = 0.1;
  }
  if (is("bursts of native")) {
    c.arms[0].burst_share = 0.1;
    for (std::size_t a = 1; a < arms; ++a) c.arms[a].mean = std::max(c.arms[a].mean, 1.25);
  }
  if (is("a good arm hidden")) hide_an_arm(r, c);
  return c;
}

/// All others are slower than native.
inline void belief_world::hide_an_arm(select::random_stream& r, one_context& c) const {
  using detail::between, detail::log_between;
  for (std::size_t a = 1; a < c.arms.size(); ++a) {
    const double slower = std::max(0.0, std::log(1.05 / c.arms[a].mean));
    c.arms[a].mean *= std::exp(slower);
    c.priors[a].log_seconds += slower;
  }
  const auto hidden = std::size_t(1 + r.below(int(c.arms.size()) - 1));
  c.arms[hidden].mean = between(r, 0.4, 0.7);
  c.priors[hidden].log_seconds = std::log(native_s * log_between(r, 2, 8));
}

}  // namespace railpass::test
