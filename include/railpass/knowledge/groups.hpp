// SPDX-License-Identifier: BSL-1.0
//
// Groups the knowledge of runs into problems for the analysis: problems that differ only in their
// size form a group.
#pragma once

#include "railpass/knowledge/analysis.hpp"
#include "railpass/knowledge/experience.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace railpass::knowledge {

struct group {
  problem of{};                         ///< its size is ignored
  std::vector<std::string> arms{};      ///< by number
  std::vector<instance> problems{};     ///< by size, in bytes, each once
  std::vector<std::size_t> contexts{};  ///< the experiences in it, by number
};

/// The time of an arm in one run: the median, because single calls may be slow for other reasons.
/// Few calls do not determine their spread, so the spread is at least the usual one.
inline timing timing_of(const arm_experience& a) {
  constexpr double usual_spread = 0.1, of_median = 1.25;
  const double spread = std::max(a.times.spread, usual_spread);
  return {a.times.quantiles.median_s, of_median * spread / std::sqrt(double(a.times.samples))};
}

/// Joins the times of one arm in two runs, weighted by their precision.
inline timing joined(const timing& a, const timing& b) {
  const double of_a = 1 / (a.error * a.error), of_b = 1 / (b.error * b.error);
  return {std::exp((of_a * std::log(a.seconds) + of_b * std::log(b.seconds)) / (of_a + of_b)),
          1 / std::sqrt(of_a + of_b)};
}

/// Sorted by collective, operation, ranks, ranks per node, kind and rails.
inline std::vector<group> groups_of(std::span<const experience> known) {
  const auto key_of = [](const problem& p) {
    return std::tuple(p.collective, p.operation, p.num_ranks, p.ranks_per_node, p.kind, p.rails);
  };
  std::map<decltype(key_of(problem{})), group> found;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const experience& e = known[i];
    if (e.arms.empty()) continue;
    group& g = found[key_of(e.of)];
    g.of = e.of;
    g.of.bytes = 0;
    g.contexts.push_back(i);
    const std::vector<double> coordinates{double(e.of.bytes)};
    auto at = std::ranges::find(g.problems, coordinates, &instance::coordinates);
    if (at == g.problems.end()) at = g.problems.insert(at, {.coordinates = coordinates});
    for (const arm_experience& a : e.arms) {
      const auto arm = std::size_t(std::ranges::find(g.arms, a.arm) - g.arms.begin());
      if (arm == g.arms.size()) g.arms.push_back(a.arm);
      if (at->arms.size() <= arm) at->arms.resize(arm + 1);
      auto& t = at->arms[arm];
      t = t ? joined(*t, timing_of(a)) : timing_of(a);
    }
  }
  std::vector<group> groups;
  for (auto& [key, g] : found) {
    for (instance& i : g.problems) i.arms.resize(g.arms.size());
    std::ranges::sort(g.problems, {}, [](const instance& i) { return i.coordinates.front(); });
    groups.push_back(std::move(g));
  }
  return groups;
}

}  // namespace railpass::knowledge
