// SPDX-License-Identifier: BSL-1.0
//
// The prior estimate of an arm: the closed form of its algorithm, corrected by the profile if there
// is one, and its uncertainty. neighbours.hpp adds what similar contexts have learnt.
#pragma once

#include "collectives/registry.hpp"
#include "models/profile.hpp"
#include "railpass/select/belief/misfit.hpp"
#include "railpass/select/lockstep/context.hpp"
#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

namespace railpass::select {

/// Constants of an unknown machine: a commodity cluster. Wrong in absolute terms almost anywhere,
/// but the order of the algorithms depends on little more than latency * bandwidth.
inline machine_model generic_machine() {
  const auto link = [](double latency_s, double overhead_s, double s_per_byte) {
    link_model result;
    result.pieces = {{.latency_s = latency_s,
                      .send_overhead_s = overhead_s,
                      .receive_overhead_s = overhead_s,
                      .gap_s = overhead_s,
                      .gap_s_per_byte = s_per_byte}};
    return result;
  };
  machine_model m;
  m.same_node = link(0.4e-6, 0.2e-6, 1.0 / 6e9);
  // Processors copy messages within a node, so both directions at once take twice as long.
  m.same_node.exchange.pieces =
      m.same_node.shift.pieces = {{.alpha_s = 0.8e-6, .s_per_byte = 2.0 / 6e9}};
  m.same_node.flow.pieces = {{.alpha_s = 0.4e-6, .s_per_byte = 2.0 / 6e9}};
  m.across_nodes = link(4e-6, 1e-6, 1.0 / 2.5e9);
  m.copy = {.alpha_s = 5e-8, .s_per_byte = 1.0 / 10e9};
  m.reduce = {.alpha_s = 5e-8, .s_per_byte = 1.0 / 30e9};  // Zen 3: 37 GB/s, Emerald Rapids: 56
  return m;
}

/// The inputs of a context's priors.
struct prior_query {
  const machine_model& machine;
  const profile* knowledge = nullptr;  ///< where `machine` comes from; null: generic constants
  context_key key{};
  int num_ranks = 2;
  int ranks_per_node = 1;
  int ranks_per_cache = 0;  ///< see cost_query
  double unit_bytes = 1;    ///< smallest piece that can be sent separately
  double bytes = 0;         ///< 0: the middle of the size class

  double message_bytes() const {
    return bytes > 0 ? bytes
                     : 1.5 * double(std::max<std::int64_t>(1, smallest_bytes(key.size_class)));
  }
};

namespace detail {

/// Spread of predictions without times of the algorithm, and limits of it.
inline constexpr double fitted_spread = 0.35, generic_spread = 0.6, least_spread = 0.08;
/// The least spread for a size between two measured sizes.
inline constexpr double table_spread = 0.2, table_spread_per_octave = 0.25;
/// The native time at a size further away from all measured sizes is unknown, because the library
/// may change its algorithm on the way.
inline constexpr double octaves_beyond_table = 2;

/// The native arm's time from the profile's table, interpolated linearly in logarithms. Near the
/// smallest and the largest measured size, the time is extrapolated, with a spread that grows by
/// octaves. Only rows of the same number of ranks count.
inline std::optional<time_estimate> native_from_table(const prior_query& q) {
  if (!q.knowledge) return std::nullopt;
  const collective_time *below = nullptr, *above = nullptr;
  const double bytes = q.message_bytes();
  for (const collective_time& t : q.knowledge->measured) {
    if (t.collective != railpass::name_of(q.key.op) || t.arm != "native" || t.median_s <= 0 ||
        t.num_ranks != q.num_ranks || t.ranks_per_node != q.ranks_per_node || t.bytes <= 0)
      continue;
    if (double(t.bytes) <= bytes && (!below || t.bytes > below->bytes)) below = &t;
    if (double(t.bytes) >= bytes && (!above || t.bytes < above->bytes)) above = &t;
  }
  if (!below && !above) return std::nullopt;
  const auto octaves = [&](const collective_time& t) {
    return std::abs(std::log2(bytes / double(t.bytes)));
  };
  if (!below || !above || below->bytes == above->bytes) {
    const collective_time& only = below ? *below : *above;
    if (octaves(only) > octaves_beyond_table) return std::nullopt;
    // The time grows at most with the size, and at least not at all: the middle counts.
    return time_estimate{only.median_s * std::sqrt(bytes / double(only.bytes)),
                         table_spread + table_spread_per_octave * octaves(only)};
  }
  const double whole = octaves(*below) + octaves(*above), share = octaves(*below) / whole;
  return time_estimate{
      below->median_s * std::pow(above->median_s / below->median_s, share),
      table_spread + 0.5 * table_spread_per_octave * (whole - 1 > 0 ? whole - 1 : 0)};
}

/// The parameter of an arm that is the length of segments.
inline std::optional<std::size_t> segment_index(const arm& a) {
  for (std::size_t i = 0; i < std::size_t(a.base->num_parameters()); ++i)
    if (a.base->parameter_list[i].name == segment_bytes_parameter.name) return i;
  return std::nullopt;
}

}  // namespace detail

/// The prior of one arm; `number` is its index in arms_of(op). Without a profile this takes well
/// under a microsecond per arm and allocates nothing.
inline arm_prior prior_of(const arm& a, int number, const prior_query& q) {
  arm_prior result{.arm = number, .native = a.base->is_native()};
  for (int i = 0;; ++i)
    if (all_algorithms[i] == a.base) {
      result.family = i;
      break;
    }
  if (result.native) {
    const auto known = detail::native_from_table(q);
    result.measured_only = !known;
    if (known) {
      result.log_seconds = std::log(known->mean_s);
      result.spread = known->spread;
    }
    return result;
  }
  if (const auto i = detail::segment_index(a); i && a.values[*i] > 0) {
    result.one_segment = double(a.values[*i]) >= q.message_bytes();
    if (!result.one_segment) result.log2_segment = std::log2(double(a.values[*i]));
  }
  const cost_query call{.machine = q.machine,
                        .num_ranks = q.num_ranks,
                        .ranks_per_node = q.ranks_per_node,
                        .ranks_per_cache = q.ranks_per_cache,
                        .bytes = q.message_bytes(),
                        .unit_bytes = q.unit_bytes};
  const double seconds = a.base->cost_s(call, a.values);
  result.log_seconds = std::log(std::max(seconds, 1e-9));
  result.spread = q.knowledge ? detail::fitted_spread : detail::generic_spread;
  if (q.knowledge)
    if (const auto* c = q.knowledge->correction(railpass::name_of(q.key.op), a.base->name)) {
      result.log_seconds += std::log(std::max(c->factor, 1e-6));
      const misfit_features features = misfit_features_of(a, call);
      const misfit off = misfit_at(*c, features);
      result.log_seconds =
          std::log(times_around_of(*c, features).between(std::exp(result.log_seconds + off.mean)));
      result.spread = std::clamp(off.spread, detail::least_spread, detail::generic_spread);
    }
  return result;
}

/// The priors of the eligible arms among `arms`, which are arms_of(op). Equal to the single priors,
/// but arms whose segments are as long as the message cost nothing.
template <class Eligible>
std::vector<arm_prior> priors_of(std::span<const arm> arms, const prior_query& q,
                                 const Eligible& is_eligible) {
  std::vector<arm_prior> result;
  for (int i = 0; i < int(arms.size()); ++i) {
    const arm& a = arms[std::size_t(i)];
    if (!is_eligible(a)) continue;
    const auto segments = detail::segment_index(a);
    if (segments && double(a.values[*segments]) >= q.message_bytes()) {
      arm whole = a;
      whole.values[*segments] = 0;
      const auto same = std::find_if(result.rbegin(), result.rend(), [&](const arm_prior& p) {
        return arms[std::size_t(p.arm)] == whole;
      });
      if (same != result.rend()) {
        arm_prior again = *same;
        again.arm = i;
        again.one_segment = true;
        result.push_back(again);
        continue;
      }
    }
    result.push_back(prior_of(a, i, q));
  }
  return result;
}

}  // namespace railpass::select
