// SPDX-License-Identifier: BSL-1.0
//
// Worlds for policies: the times of a context's arms, call by call, with all kinds of misbehaviour
// of machines and programs. A world is an interface, so that tests can replace it; make_world()
// draws a world from a seed.
#pragma once

#include "railpass/select/policy/policy.hpp"
#include "railpass/select/policy/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::test {

/// The times of calls in seconds. Arms are indices in `priors`, calls count from 0. All functions
/// depend on their arguments only.
class world {
 public:
  virtual ~world() = default;

  /// The mean time of the call over all noise.
  virtual double mean_s(int arm, std::int64_t call) const = 0;
  /// The measured time if the call before took `before_s`; `noise` is a seed.
  virtual double draw_s(int arm, std::int64_t call, double before_s, std::uint64_t noise) const = 0;
  /// Whether some arm's time differs from the call before.
  virtual bool changes_at(std::int64_t call) const = 0;

  std::string family;                     ///< the kind of world
  std::vector<select::arm_prior> priors;  ///< the first one is native, and `arm` is the index
  std::int64_t calls = 0;                 ///< of the context
  int num_ranks = 2;                      ///< delay of the reply to a synchronisation
  double native_s = 0;                    ///< native's mean time in quiet: the unit of all results
  double merge_s = 0, merge_at_once_s = 0;  ///< cost of a synchronisation for the calls around it
  double first_plan_s = 0;
  double largest_noise = 0;  ///< standard deviation of ln(measured / mean)
  bool has_traps = false;    ///< arms that take many times as long as native
};

namespace detail {

/// A period in which all calls take longer.
struct slow_while {
  std::int64_t first = 0, length = 0, period = 0;  // period 0: once
  double factor = 1;

  double at(std::int64_t call) const {
    if (length == 0 || call < first) return 1;
    const std::int64_t since = period > 0 ? (call - first) % period : call - first;
    return since < length ? factor : 1;
  }
};

class random_world final : public world {
 public:
  explicit random_world(std::uint64_t seed);

  double mean_s(int arm, std::int64_t call) const override {
    return native_s * arms_[std::size_t(arm)].mean * ratio_now(arms_[std::size_t(arm)], call) *
           while_.at(call);
  }

  double draw_s(int arm, std::int64_t call, double before_s, std::uint64_t noise) const override {
    const one_arm& a = arms_[std::size_t(arm)];
    select::random_stream r(noise * 0x9e3779b97f4a7c15u + std::uint64_t(call) * 512 +
                            std::uint64_t(arm));
    const double z = a.noise * r.normal() - 0.5 * a.noise * a.noise, tail = r.uniform(),
                 how_slow = r.uniform(), late = r.uniform(), waits = r.uniform();
    double factor = std::exp(z);
    if (tail < a.slow_share) factor *= a.slow_factor;
    if (tail > 1 - outliers_) factor *= 2 * std::pow(25.0, how_slow);
    double seconds = mean_s(arm, call) / a.of_factor * factor;
    seconds -= lateness_ * native_s * std::log(late);
    if (waits < waiting_share_) seconds += how_slow * before_s;
    return seconds;
  }

  bool changes_at(std::int64_t call) const override {
    return drift_ > 0 || (call > 0 && while_.at(call) != while_.at(call - 1)) ||
           std::ranges::any_of(
               arms_, [&](const one_arm& a) { return a.changes_at == call && a.becomes != 1; });
  }

 private:
  struct one_arm {
    double mean = 1;     // in native's
    double noise = 0.1;  // of the logarithm
    double slow_share = 0, slow_factor = 1;
    double of_factor = 1;  // mean of the noise
    std::int64_t changes_at = -1;
    double becomes = 1;  // times as long
    double phase = 0;    // of the drift
  };

  double ratio_now(const one_arm& a, std::int64_t call) const {
    double ratio = a.changes_at >= 0 && call >= a.changes_at ? a.becomes : 1;
    if (drift_ > 0) ratio *= std::exp(drift_ * std::sin(a.phase + double(call) / drift_calls_));
    return ratio;
  }

  void draw_arms(select::random_stream& r, double typical, double spread);
  void predict(select::random_stream& r, bool nonsense);

  std::vector<one_arm> arms_;
  slow_while while_;
  double outliers_ = 0;       // share of calls, for all arms, that take 2 to 50 times as long
  double lateness_ = 0;       // in native calls
  double waiting_share_ = 0;  // of samples contain a part of the call before
  double drift_ = 0, drift_calls_ = 1;
};

inline double between(select::random_stream& r, double low, double high) {
  return low + (high - low) * r.uniform();
}
inline double log_between(select::random_stream& r, double low, double high) {
  return low * std::pow(high / low, r.uniform());
}

}  // namespace detail

/// The kinds of worlds, in turn by seed; everything else is drawn for each world.
inline constexpr std::array world_families{"quiet",
                                           "noisy",
                                           "heavy tails",
                                           "two-peaked arms",
                                           "traps",
                                           "arms degrade",
                                           "arms improve",
                                           "a step",
                                           "drift",
                                           "slow once",
                                           "slow by times",
                                           "late ranks",
                                           "waiting in samples",
                                           "nonsense predictions",
                                           "dear merges",
                                           "native is best"};

/// The same world for the same seed, on every machine.
inline detail::random_world make_world(std::uint64_t seed) { return detail::random_world(seed); }

inline detail::random_world::random_world(std::uint64_t seed) {
  select::random_stream r(seed * 0xd1342543de82ef95u + 1);
  family = world_families[seed % world_families.size()];
  const auto is = [&](std::string_view name) { return family == name; };
  const auto sometimes = [&](double share) { return r.uniform() < share; };

  calls = std::int64_t(log_between(r, 30, 1e5));
  num_ranks = 1 << (1 + r.below(9));
  native_s = log_between(r, 1e-6, 1e-2);
  largest_noise =
      is("noisy") ? between(r, 0.25, 0.5) : log_between(r, 0.01, is("quiet") ? 0.1 : 0.5);
  merge_s = native_s * (is("dear merges") ? between(r, 3, 10)
                                          : std::max(0.0, log_between(r, 0.001, 3) - 0.002));
  merge_at_once_s = merge_s * between(r, 1, 4);
  first_plan_s = native_s * between(r, 0, 2);

  arms_.resize(1 + std::size_t(log_between(r, 1, 300)));
  if (is("native is best"))
    draw_arms(r, between(r, 0.1, 0.6), 0.2);
  else
    draw_arms(r, between(r, -0.6, 0.6), between(r, 0.05, 0.5));
  for (std::size_t a = 1; a < arms_.size(); ++a)
    if (is("native is best")) arms_[a].mean = std::max(arms_[a].mean, 1.02);
  has_traps = is("traps") || sometimes(0.2);
  predict(r, is("nonsense predictions") || (!is("quiet") && sometimes(0.15)));
  if (has_traps) {
    const double share = between(r, 0.1, 0.5), most = log_between(r, 5, 100);
    for (std::size_t a = 1; a < arms_.size(); ++a)
      if (sometimes(share)) arms_[a].mean = log_between(r, 4, most);
  }

  for (one_arm& a : arms_) {
    a.noise = largest_noise * between(r, 0.5, 1);
    a.phase = between(r, 0, 6.28);
  }
  if (is("heavy tails") || sometimes(0.15)) outliers_ = log_between(r, 0.002, 0.05);
  if (is("two-peaked arms") || (!is("quiet") && sometimes(0.1))) {
    for (std::size_t a = 1; a < arms_.size(); ++a) {
      if (!sometimes(0.3)) continue;
      arms_[a].slow_share = between(r, 0.05, 0.3);
      arms_[a].slow_factor = between(r, 2, 10);
    }
  }
  const auto when = [&] { return std::int64_t(log_between(r, 0.05, 0.9) * double(calls)); };
  const auto change = [&](double share, double least, double most, std::size_t first = 1) {
    const std::int64_t at = when();
    const bool together = sometimes(0.5);
    for (std::size_t a = first; a < arms_.size(); ++a) {
      if (!sometimes(share)) continue;
      arms_[a].changes_at = together ? at : when();
      arms_[a].becomes = log_between(r, least, most);
    }
  };
  if (is("arms degrade")) change(between(r, 0.1, 1), 1.2, log_between(r, 2, 100));
  if (is("arms improve")) change(between(r, 0.05, 0.5), 0.3, 0.9);
  if (is("a step")) change(1, 0.4, 2.5, 0);
  if (is("drift")) drift_ = between(r, 0.02, 0.3), drift_calls_ = log_between(r, 300, 30000);
  if (is("slow once"))
    while_ = {.first = when(),
              .length = std::int64_t(log_between(r, 20, 5000)),
              .factor = log_between(r, 2, 1000)};
  if (is("slow by times")) {
    while_ = {.first = when(),
              .length = std::int64_t(log_between(r, 20, 5000)),
              .factor = log_between(r, 2, 100)};
    while_.period = std::int64_t(double(while_.length) * log_between(r, 2, 30));
  }
  if (is("late ranks") || sometimes(0.15)) lateness_ = log_between(r, 0.02, 1);
  if (is("waiting in samples") || sometimes(0.15)) waiting_share_ = between(r, 0.05, 0.5);
  for (one_arm& a : arms_) {
    double tails = 1 + a.slow_share * (a.slow_factor - 1);
    // The mean of 2 * 25^u over u in (0, 1).
    if (outliers_ > 0) tails *= 1 + outliers_ * (2 * 24 / std::log(25.0) - 1);
    a.of_factor = tails;
    a.mean *= 1 + a.slow_share * (a.slow_factor - 1);
  }
}

/// Arms of one algorithm are similar; without traps no arm takes more than four times native's
/// time.
inline void detail::random_world::draw_arms(select::random_stream& r, double typical,
                                            double spread) {
  priors.resize(arms_.size());
  priors[0] = {.arm = 0, .native = true, .measured_only = true};
  int family_number = 0, left = 0;
  double of_family = 0;
  for (std::size_t a = 1; a < arms_.size(); ++a) {
    if (left-- == 0) {
      ++family_number;
      left = r.below(12);
      of_family = typical + spread * r.normal();
    }
    const double segment = left > 0 ? 10 + left : 24;
    arms_[a].mean = std::exp(std::clamp(of_family + 0.4 * spread * r.normal(), -1.6, 1.38));
    priors[a] = {.arm = int(a), .family = family_number, .log2_segment = segment};
  }
}

inline void detail::random_world::predict(select::random_stream& r, bool nonsense) {
  const double error = log_between(r, 0.05, 0.6), claimed = error * log_between(r, 0.7, 1.4);
  const double common = 0.3 * r.normal();  // the common error of all predictions
  const bool by_families = r.uniform() < 0.25;
  double of_family = 0;
  for (std::size_t a = 1; a < arms_.size(); ++a) {
    if (priors[a].family != priors[a - 1].family || a == 1) {
      of_family = 0.7 * error * r.normal();
      if (by_families && r.uniform() < 0.3)
        of_family += (r.uniform() < 0.5 ? -1 : 1) * between(r, 0.7, 1.6);
    }
    const double off = nonsense ? between(r, -2.3, 2.3) : of_family + 0.7 * error * r.normal();
    priors[a].log_seconds = std::log(native_s * arms_[a].mean) + off + common;
    priors[a].spread = std::clamp(claimed, 0.08, 0.6);
  }
  if (r.uniform() < 0.4) {  // the profile contains a time of native
    priors[0].measured_only = false;
    priors[0].log_seconds = std::log(native_s) + common + 0.15 * r.normal();
    priors[0].spread = 0.2;
  }
}

}  // namespace railpass::test
