// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/planned.hpp"

#include "lib/characterise/gains.hpp"
#include "railpass/knowledge/freeze.hpp"
#include "railpass/knowledge/imports.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace railpass::internal::characterise {
namespace {

using knowledge::planned_calls;

// The default and the arms of railpass with a certain gain, without undecided cells.
bench_results certain_results(const bench_results& bench) {
  bench_results kept = decided(bench, arms_of::railpass);
  std::erase_if(kept.results, [](const bench_result& r) {
    return r.arm != "native" && (is_own_algorithm(r.arm) || !is_certain_gain(r));
  });
  return kept;
}

// The arm for sizes between two measured sizes, which gains at both; empty if no arm does.
std::optional<std::string> arm_between(const bench_results& certain, const std::string& collective,
                                       std::int64_t below, std::int64_t above) {
  std::optional<std::string> best;
  double least = 1;
  for (const bench_result& a : certain.results)
    for (const bench_result& b : certain.results) {
      if (a.collective != collective || b.collective != collective || a.bytes != below ||
          b.bytes != above || a.arm != b.arm || a.arm == "native")
        continue;
      const double worse = std::max(*a.ratio_to_native, *b.ratio_to_native);
      if (worse < least) least = worse, best = a.arm;
    }
  return best;
}

// The entry for the sizes between two entries of one shape.
std::optional<planned_calls> calls_between(const planned_calls& a, const planned_calls& b,
                                           const bench_results& certain) {
  planned_calls between = a;
  between.from_bytes = *a.to_bytes + 1;
  between.to_bytes = b.from_bytes - 1;
  if (between.from_bytes > *between.to_bytes) return std::nullopt;
  if (a.variant == "native" && b.variant == "native") return between;
  std::int64_t below = -1, above = -1;
  for (const bench_result& r : certain.results) {
    if (r.collective != a.collective) continue;
    if (r.bytes <= *a.to_bytes) below = std::max(below, r.bytes);
    if (r.bytes >= b.from_bytes) above = above < 0 ? r.bytes : std::min(above, r.bytes);
  }
  auto arm = arm_between(certain, a.collective, below, above);
  if (!arm) return std::nullopt;
  between.variant = std::move(*arm);
  return between;
}

}  // namespace

std::vector<planned_calls> plan_of(std::span<const libraries::named_bench> benches) {
  std::vector<bench_results> certain;
  std::vector<knowledge::experience> known;
  for (const libraries::named_bench& one : benches) {
    certain.push_back(certain_results(one.bench));
    std::ranges::move(knowledge::record_of(certain.back()).contexts, std::back_inserter(known));
  }
  const std::vector<planned_calls> measured = knowledge::freeze(known).calls;
  std::vector<planned_calls> all;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    append(all, measured[i]);
    if (i + 1 == measured.size() || shape_of(measured[i]) != shape_of(measured[i + 1])) continue;
    const auto bench = std::ranges::find(certain, measured[i].num_ranks, &bench_results::num_ranks);
    if (const auto between = calls_between(measured[i], measured[i + 1], *bench))
      append(all, *between);
  }
  return all;
}

}  // namespace railpass::internal::characterise
