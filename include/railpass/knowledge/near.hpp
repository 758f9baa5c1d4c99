// SPDX-License-Identifier: BSL-1.0
//
// Prior times for the versions of a function set, from measurements of near problems. Calls of
// another size take longer or shorter as a whole; the ratios between versions carry over, with a
// variance that grows with the distance.
#pragma once

#include "railpass/base/features.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/knowledge/recall.hpp"
#include "railpass/knowledge/set_kind.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

namespace railpass::knowledge {

/// Further problems would hardly count.
inline constexpr std::size_t most_near = 32;

/// The Euclidean distance of the logarithms. Allocates nothing, so no rank runs out of memory.
inline double octaves_between(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart =
        std::log2(std::max(1.0, double(a[i]))) - std::log2(std::max(1.0, double(b[i])));
    squares += apart * apart;
  }
  return std::sqrt(squares);
}

/// The distance in octaves, or as `by` defines; empty if the features share nothing.
inline std::optional<double> distance(std::span<const std::int64_t> known,
                                      std::span<const std::int64_t> wanted,
                                      const feature_distance& by) {
  if (known.empty() || known.size() != wanted.size()) return std::nullopt;
  double away = 0;
  try {
    away = by ? by(known, wanted) : octaves_between(known, wanted);
  } catch (...) {  // an exception of the caller's function; the call continues
    return std::nullopt;
  }
  if (!(away >= 0 && away <= select::most_octaves)) return std::nullopt;
  return away;
}

/// By how many octaves the sum of `wanted` is larger than the sum of `than`.
inline double octaves_larger(std::span<const std::int64_t> than,
                             std::span<const std::int64_t> wanted) {
  const auto size = [](std::span<const std::int64_t> features) {
    double sum = 0;
    for (const std::int64_t f : features) sum += double(f);
    return std::log2(std::max(1.0, sum));
  };
  return size(wanted) - size(than);
}

/// A search for problems of a function set that are near to one.
struct near_search {
  const problem& of;     ///< its operation and bytes do not count
  const set_kind& kind;  ///< in place of the operation
  const feature_distance& by;
};

struct nearness {
  double distance = 0;
  double octaves = 0;  ///< by which the sum of the wanted features is larger
};

/// How near two problems are that are equal except for their features; empty otherwise.
/// @param its the kind of the known problem
inline std::optional<nearness> near(const problem& known, const set_kind& its,
                                    const near_search& wanted) {
  const problem& of = wanted.of;
  if (known.collective != of.collective || known.rails != of.rails ||
      known.num_ranks != of.num_ranks || known.ranks_per_node != of.ranks_per_node ||
      its.shape != wanted.kind.shape || its.region != wanted.kind.region)
    return std::nullopt;
  const auto away = distance(its.features, wanted.kind.features, wanted.by);
  if (!away) return std::nullopt;
  return nearness{*away, octaves_larger(its.features, wanted.kind.features)};
}
/// As above, for a known problem from a file.
inline std::optional<nearness> near(const problem& known, const near_search& wanted) {
  if (known.collective != wanted.of.collective) return std::nullopt;
  const auto its = set_kind::of(known.operation);
  return its ? near(known, *its, wanted) : std::nullopt;
}

/// A near problem.
struct neighbour {
  double distance = 0;
  double octaves = 0;  ///< by which the sum of the new problem's features is larger
  double days_ago = 0;
  experience known{};
};

namespace detail {

/// The estimated time of one arm, while problems are added.
class estimate {
 public:
  bool is_known() const { return weight_ > 0; }
  double log_seconds() const { return sum_ / weight_; }
  /// The spread of the best source, because errors of near problems are correlated.
  double spread() const { return spread_; }
  void add(double log_seconds, double spread) {
    spread_ = is_known() ? std::min(spread_, spread) : spread;
    weight_ += 1 / (spread * spread);
    sum_ += log_seconds / (spread * spread);
  }

 private:
  double weight_ = 0, sum_ = 0, spread_ = 0;
};

}  // namespace detail

/// Gives priors to arms without a prediction, from their times in `near` problems. Arms that no
/// near problem contains stay without a prediction.
/// @param near sorted by distance
/// @param name_of returns an arm's name for its number
template <class NameOf>
void predict_from_near(std::span<select::arm_prior> priors, std::span<const neighbour> near,
                       const NameOf& name_of) {
  // The drift of arms relative to each other over one octave, as a random walk.
  constexpr double drift_per_octave = 0.2;
  // The growth of times per octave: from none, as for short messages, to a factor of two. Two
  // problems an octave apart define it better than this prior.
  constexpr double usual_growth = 0.5 * std::numbers::ln2, usual_weight = 0.5;

  using estimates = std::vector<detail::estimate>;  // by arm
  std::vector<estimates> told;                      // by problem: times as measured there
  for (const neighbour& n : near) {
    estimates& of_arms = told.emplace_back(priors.size());
    for (std::size_t a = 0; a < priors.size(); ++a) {
      const auto known =
          std::ranges::find(n.known.arms, name_of(priors[a].arm), &arm_experience::arm);
      if (known == n.known.arms.end()) continue;
      const select::time_estimate took = told_by(*known, n.days_ago);
      of_arms[a].add(took.log_seconds(),
                     std::hypot(took.spread, drift_per_octave * std::sqrt(n.distance)));
    }
  }
  // The median difference of the arms that both estimates contain.
  const auto longer = [](const estimates& first, const estimates& second) -> std::optional<double> {
    std::vector<double> apart;
    for (std::size_t a = 0; a < first.size(); ++a)
      if (first[a].is_known() && second[a].is_known())
        apart.push_back(first[a].log_seconds() - second[a].log_seconds());
    if (apart.empty()) return std::nullopt;
    return median(apart);
  };
  double growth = usual_growth * usual_weight, weight = usual_weight;
  for (std::size_t i = 1; i < near.size(); ++i) {
    const double octaves = near[0].octaves - near[i].octaves;
    if (const auto by = longer(told[i], told[0]))
      growth += octaves * *by, weight += octaves * octaves;
  }
  growth /= weight;

  estimates here(priors.size());
  for (std::size_t a = 0; a < priors.size(); ++a)
    if (!priors[a].measured_only) here[a].add(priors[a].log_seconds, priors[a].spread);
  for (std::size_t i = 0; i < near.size(); ++i) {
    // Arms known here define the level, also if the machine was faster in the earlier run.
    const double level = longer(here, told[i]).value_or(growth * near[i].octaves);
    for (std::size_t a = 0; a < priors.size(); ++a)
      if (told[i][a].is_known()) here[a].add(told[i][a].log_seconds() + level, told[i][a].spread());
  }
  for (std::size_t a = 0; a < priors.size(); ++a) {
    select::arm_prior& p = priors[a];
    if (!p.measured_only || !here[a].is_known()) continue;
    p.measured_only = false;
    p.remembered = true;
    p.log_seconds = here[a].log_seconds();
    p.spread = here[a].spread();
  }
}

}  // namespace railpass::knowledge
