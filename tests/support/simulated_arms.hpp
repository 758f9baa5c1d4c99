// SPDX-License-Identifier: BSL-1.0
//
// A machine that is not there: contexts whose arms take the time of their closed form times an
// error that arms of one algorithm share in part, with noise, drift, outliers and late arrivals.
#pragma once

#include "railpass/select/belief/prior.hpp"
#include "railpass/select/policy/random.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace railpass::test {

struct simulation_options {
  double misfit = 0.25;        ///< standard deviation of ln(true / model) is 1.16 times this
  double wrong_family = 0.06;  ///< probability that an algorithm is 2 to 3 times off
  double noise = 0.15;         ///< standard deviation of ln(time) from call to call
  double outliers = 0.02;      ///< probability of a call that takes 2 to 50 times as long
  double late = 0.2;           ///< mean wait for late ranks, of the best arm's time
  double wrong_constants = 0.12;
  bool fitted = true;         ///< the prior is a fitted model; else generic constants
  bool native_table = false;  ///< the profile knows the native arm's time
  double native_typical = 0.35, native_spread = 0.4;  ///< ln(native / best), at least -0.2
};

struct simulated_context {
  std::vector<select::arm_prior> priors;
  std::vector<double> true_s;  ///< by position in priors; priors[0] is native
  double best_s = 0;
  double merge_cost_s = 0;
  select::context_key key;

  std::size_t best() const {
    return std::size_t(std::min_element(true_s.begin(), true_s.end()) - true_s.begin());
  }
  std::size_t position_of(int arm) const {
    for (std::size_t i = 0; i < priors.size(); ++i)
      if (priors[i].arm == arm) return i;
    throw error("the plan names arm " + std::to_string(arm) + ", which the context does not have");
  }
};

inline simulated_context make_context(const simulation_options& o, select::random_stream& r) {
  struct platform {
    double latency_s, overhead_s, s_per_byte;
    int max_ranks_log2;
  };
  static constexpr platform platforms[] = {{28e-6, 4e-6, 1 / 117e6, 8},
                                           {9e-6, 1.5e-6, 1 / 2.9e9, 9},
                                           {1.4e-6, 0.25e-6, 1 / 22e9, 10},
                                           {0.35e-6, 0.12e-6, 1 / 9e9, 7}};
  const platform& base = platforms[r.below(4)];
  machine_model truth = select::generic_machine(), model = truth;
  const auto jitter = [&](double value, double& t, double& m) {
    t = value * std::exp(0.25 * r.normal());
    m = t * std::exp(o.wrong_constants * r.normal());
  };
  link_piece &t = truth.across_nodes.pieces[0], &m = model.across_nodes.pieces[0];
  jitter(base.latency_s, t.latency_s, m.latency_s);
  jitter(base.overhead_s, t.send_overhead_s, m.send_overhead_s);
  t.receive_overhead_s = t.gap_s = t.send_overhead_s;
  m.receive_overhead_s = m.gap_s = m.send_overhead_s;
  jitter(base.s_per_byte, t.gap_s_per_byte, m.gap_s_per_byte);
  if (!o.fitted) model = select::generic_machine();

  simulated_context c;
  c.key.op = r.below(2) == 0 ? collective::broadcast : collective::all_reduce;
  const int ranks = 1 << (2 + r.below(base.max_ranks_log2 - 1));
  c.key.size_class = std::uint8_t(3 + r.below(20));
  const double bytes = std::ldexp(1.0, c.key.size_class);
  profile fitted;  // a designated initializer makes GCC 12 warn with -O3
  fitted.machine = model;
  const select::prior_query query{.machine = model,
                                  .knowledge = o.fitted ? &fitted : nullptr,
                                  .key = c.key,
                                  .num_ranks = ranks,
                                  .bytes = bytes};

  std::map<int, double> family_error;
  std::map<std::pair<int, int>, double> segment_error;
  const auto arms = arms_of(c.key.op);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (!eligible(*arms[i].base, {.num_ranks = ranks, .units = std::int64_t(bytes)})) continue;
    const select::arm_prior p = select::prior_of(arms[i], int(i), query);
    c.priors.push_back(p);
    if (p.native) {
      c.true_s.push_back(0);
      continue;
    }
    if (!family_error.contains(p.family)) {
      double e = o.misfit * 0.74 * r.normal();
      if (r.uniform() < o.wrong_family)
        e += (r.uniform() < 0.5 ? -1 : 1) * (0.69 + 0.4 * r.uniform());
      family_error[p.family] = e;
    }
    const std::pair place{p.family, int(p.log2_segment / 2)};
    if (!segment_error.contains(place)) segment_error[place] = o.misfit * 0.45 * r.normal();
    const double error = family_error[p.family] + segment_error[place] +
                         (p.log2_segment < 24 ? o.misfit * 0.35 * r.normal() : 0.0);
    const double seconds = arms[i].base->cost_s(
        {.machine = truth, .num_ranks = ranks, .bytes = bytes}, arms[i].values);
    c.true_s.push_back(seconds * std::exp(error));
  }
  const double best = *std::min_element(c.true_s.begin() + 1, c.true_s.end());
  c.true_s[0] = best * std::exp(std::max(-0.2, o.native_typical + o.native_spread * r.normal()));
  if (o.native_table) {
    c.priors[0].measured_only = false;
    c.priors[0].spread = 0.2;
    c.priors[0].log_seconds = std::log(c.true_s[0]) + 0.15 * r.normal();
  }
  c.best_s = c.true_s[c.best()];
  c.merge_cost_s = 2.7e-6 + 2 * std::log2(ranks) * t.send_overhead_s;
  return c;
}

/// One measured call.
class simulated_clock {
 public:
  simulated_clock(const simulation_options& o, std::uint64_t seed) : options_(o), random_(seed) {}

  double time_s(double true_s, double best_s) {
    drift_ += -drift_ / 200 + 0.05 * std::sqrt(2.0 / 200) * random_.normal();
    double t = true_s * std::exp(options_.noise * random_.normal() -
                                 0.5 * options_.noise * options_.noise + drift_);
    if (random_.uniform() < options_.outliers) t *= 2 * std::pow(25.0, random_.uniform());
    return t - options_.late * best_s * std::log(random_.uniform());
  }

 private:
  simulation_options options_;
  select::random_stream random_;
  double drift_ = 0;
};

}  // namespace railpass::test
