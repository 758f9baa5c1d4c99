// SPDX-License-Identifier: BSL-1.0
//
// Predictions from a profile for collectives that never ran: the time of every arm, the sizes at
// which the best arm changes, and both by simulation.
#pragma once

#include "models/profile.hpp"
#include "models/simulator.hpp"
#include "railpass/schedule/nodes.hpp"
#include "railpass/select/belief/prior.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace railpass {

/// The value of link_model::residual_spread for a link that was not sampled and has the other
/// link's model (see fit_profile()).
inline constexpr double unsampled_spread = 1;

struct prediction_query {
  collective op = collective::broadcast;
  int num_ranks = 2;
  int ranks_per_node = 1;
  int ranks_per_cache = 0;  ///< of one node; 0: all share one cache
  std::int64_t bytes = 1;
  std::int64_t unit_bytes = 1;  ///< smallest piece that can be sent separately
  bool commutative = true;      ///< reductions: the operands may be exchanged
};

struct arm_prediction {
  arm what;
  std::optional<double> seconds;  ///< empty: neither closed form nor measurement
  double spread = 0;              ///< standard deviation of ln(true / predicted)
};

/// The most ranks for which the profile has times of the collective; 2 without any times, because
/// links are sampled between 2 ranks.
inline double most_measured_ranks(const profile& p, collective op) {
  double octaves = 1;
  for (const algorithm_correction& c : p.corrections)
    if (c.collective == name_of(op))
      for (const algorithm_correction::point& known : c.points)
        octaves = std::max(octaves, known.features.ranks);
  return std::exp2(octaves);
}

namespace detail {

/// The variance of ln(true / predicted): a prior's without its limit, plus a term for each octave
/// of ranks beyond all measured numbers of ranks.
inline double variance_of(const profile& p, const arm& a, const prediction_query& q,
                          double prior_spread) {
  double variance = prior_spread * prior_spread;
  if (const auto* c = p.correction(name_of(q.op), a.base->name)) {
    const misfit_features features =
        select::misfit_features_of(a, {.machine = p.machine,
                                       .num_ranks = q.num_ranks,
                                       .ranks_per_node = q.ranks_per_node,
                                       .ranks_per_cache = q.ranks_per_cache,
                                       .bytes = double(std::max<std::int64_t>(1, q.bytes)),
                                       .unit_bytes = double(q.unit_bytes)});
    variance = std::max(variance, std::pow(select::misfit_at(*c, features).spread, 2));
  }
  return variance + select::detail::beyond_variance *
                        std::max(0.0, std::log2(q.num_ranks / most_measured_ranks(p, q.op)));
}

inline arm_prediction predict_arm(const profile& p, const arm& a, const prediction_query& q) {
  const select::arm_prior prior =
      select::prior_of(a, 0,
                       {.machine = p.machine,
                        .knowledge = &p,
                        .key = {.op = q.op, .size_class = select::size_class_of(q.bytes)},
                        .num_ranks = q.num_ranks,
                        .ranks_per_node = q.ranks_per_node,
                        .ranks_per_cache = q.ranks_per_cache,
                        .unit_bytes = double(q.unit_bytes),
                        .bytes = double(std::max<std::int64_t>(1, q.bytes))});
  if (prior.measured_only) return {.what = a, .seconds = {}, .spread = 0};
  double spread =
      a.base->is_native() ? prior.spread : std::sqrt(variance_of(p, a, q, prior.spread));
  if (a.base->needs.shared_memory && !p.machine.shared.measured)
    spread = std::max(spread, unsampled_spread);
  return {.what = a, .seconds = std::exp(prior.log_seconds), .spread = spread};
}

inline bool eligible_at(const arm& a, const prediction_query& q) {
  const bool one_node = q.num_ranks <= q.ranks_per_node;
  const int per_cache = q.ranks_per_cache > 0 ? q.ranks_per_cache : q.num_ranks;
  return eligible(*a.base, {.num_ranks = q.num_ranks,
                            .units = q.bytes / q.unit_bytes,
                            .commutative = q.commutative,
                            .shared_memory = q.unit_bytes <= cell_bytes,
                            .single_copy = one_node,
                            .nodes = node_facts::blocks(q.num_ranks, q.ranks_per_node),
                            .caches = node_facts::blocks(q.num_ranks, per_cache)});
}

}  // namespace detail

/// Whether the profile sampled all kinds of links that the ranks use; otherwise the error of
/// predictions is unknown.
inline bool knows_links(const profile& p, int num_ranks, int ranks_per_node) {
  const auto sampled = [](const link_model& l) { return l.residual_spread < unsampled_spread; };
  return (num_ranks <= ranks_per_node || sampled(p.machine.across_nodes)) &&
         (std::min(num_ranks, ranks_per_node) < 2 || sampled(p.machine.same_node));
}

/// Every arm that may run, the fastest first, arms without a prediction last.
inline std::vector<arm_prediction> predict_arms(const profile& p, const prediction_query& q) {
  std::vector<arm_prediction> result;
  for (const arm& a : arms_of(q.op))
    if (detail::eligible_at(a, q)) result.push_back(detail::predict_arm(p, a, q));
  std::stable_sort(result.begin(), result.end(),
                   [](const arm_prediction& x, const arm_prediction& y) {
                     if (!x.seconds || !y.seconds) return x.seconds && !y.seconds;
                     return *x.seconds < *y.seconds;
                   });
  return result;
}

/// The best arm from this size up to the next crossover.
struct crossover {
  std::int64_t from_bytes = 0;
  arm best;
};

/// The best arms for q.op, num_ranks and ranks_per_node for sizes from `from_bytes` to `to_bytes`;
/// the first entry is at from_bytes. Changes that last for less than a quarter of an octave may be
/// missed. Native times far from all measured sizes are ignored.
/// @param least_gain fraction by which another arm must be faster somewhere; the reported size is
///   where both are equally fast, exact to the unit
/// @throws error for sizes below 1 or out of order
inline std::vector<crossover> crossovers(const profile& p, prediction_query q,
                                         std::int64_t from_bytes, std::int64_t to_bytes,
                                         double least_gain = 0.01) {
  if (from_bytes < 1 || to_bytes < from_bytes)
    throw error("predict: expected sizes from at least 1 byte up");
  constexpr double untrusted_spread = 0.5, quarter_octave = 1.189207115;
  const std::vector<arm> arms = arms_of(q.op);
  // Empty: the arm cannot run, or its time is unknown.
  const auto time_of = [&](const arm& a, std::int64_t bytes) -> std::optional<double> {
    q.bytes = bytes;
    if (!detail::eligible_at(a, q)) return std::nullopt;
    const arm_prediction known = detail::predict_arm(p, a, q);
    return known.spread <= untrusted_spread || !a.base->is_native() ? known.seconds : std::nullopt;
  };
  const auto best_at = [&](std::int64_t bytes) {
    std::pair<const arm*, double> best{nullptr, 0};
    for (const arm& a : arms)
      if (const auto t = time_of(a, bytes); t && (!best.first || *t < best.second)) best = {&a, *t};
    return best;
  };

  std::vector<crossover> result;
  const arm* current = nullptr;
  std::int64_t before = from_bytes;
  for (std::int64_t bytes = from_bytes;;) {
    const auto [best, seconds] = best_at(bytes);
    const auto now = current ? time_of(*current, bytes) : std::nullopt;
    if (best && best != current && (!now || *now > seconds * (1 + least_gain))) {
      // Back to a size at which the new arm was still slower, then bisection to the unit.
      std::int64_t slower = before, faster = bytes;
      const auto as_fast = [&](std::int64_t size) {
        const auto mine = time_of(*current, size), its = time_of(*best, size);
        return its && (!mine || *its <= *mine);
      };
      const std::int64_t earliest = current ? result.back().from_bytes : from_bytes;
      while (current && slower > earliest && as_fast(slower)) {
        faster = slower;
        slower = std::max(earliest, std::int64_t(double(slower) / quarter_octave));
      }
      while (current && faster - slower > 1) {
        const std::int64_t middle = slower + (faster - slower) / 2;
        (as_fast(middle) ? faster : slower) = middle;
      }
      result.push_back({current ? faster : from_bytes, *best});
      current = best;
    }
    if (bytes >= to_bytes) return result;
    before = bytes;
    bytes = std::min(to_bytes, std::max(bytes + 1, std::int64_t(double(bytes) * quarter_octave)));
  }
}

/// Simulates one arm on all ranks of the layout, in the order in which calls have them. The arm
/// must be eligible and have a schedule (not native). The simulator owns the result.
/// @throws error if the arm has no schedule or the root is no rank
inline const simulation& simulate_arm(simulator& s, const machine_model& machine, const arm& a,
                                      const node_layout& nodes, const message_size& size,
                                      std::int32_t root = 0, bool record = false) {
  if (!a.base->build)
    throw error("predict: " + name_of(a) + " of " + std::string(name_of(a.base->op)) +
                " has no schedule and cannot be simulated");
  std::vector<schedule> schedules;
  const auto p = std::int32_t(nodes.node_of_rank.size());
  schedules.reserve(std::size_t(p));
  if (root < 0 || root >= p) throw error("predict: expected a root below the rank count");
  const bool by_caches = a.base->needs.several_caches && !nodes.cache_of_rank.empty();
  node_order order(by_caches ? nodes.cache_of_rank : nodes.node_of_rank);
  order.begin_with(root);
  const bool as_calls_do = takes_any_order(a.base->op, true);
  for (std::int32_t rank = 0; rank < p; ++rank)
    schedules.push_back(a.base->build(
        {.rank = rank, .num_ranks = p, .commutative = true, .nodes = order.begins()}, a.values));
  return s.run({.machine = machine,
                .nodes = nodes,
                .schedules = schedules,
                .size = size,
                .root = root,
                .ranks = as_calls_do ? order.ranks() : rank_order{},
                .record = record});
}

}  // namespace railpass
