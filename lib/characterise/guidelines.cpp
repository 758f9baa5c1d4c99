// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/guidelines.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace railpass::internal::characterise {
namespace {

// Times have to differ by this factor.
constexpr double least_factor = 1.05;

// A native time, and what the median over the launches may be.
struct bounded_time {
  double median_s = 0, low_s = 0, high_s = 0;
  bool is_certain = true;  // the bounds hold with 95 % confidence
};
using curve = std::map<std::int64_t, bounded_time>;

std::map<std::string, curve> native_curves(const bench_results& bench) {
  std::map<std::string, curve> all;
  for (const bench_result& r : bench.results) {
    if (r.arm != "native" || r.launch_medians_s.size() < 2) continue;
    const median_bounds likely = bounds_of_median(r.launch_medians_s);
    all[r.collective].insert_or_assign(
        r.bytes,
        bounded_time{r.median_s, likely.bounds.low, likely.bounds.high, likely.confidence >= 0.95});
  }
  return all;
}

// The size, or one that whole elements and equal blocks make a little larger.
const bounded_time* at(const curve& times, std::int64_t bytes) {
  const auto found = times.lower_bound(bytes);
  if (found == times.end() || found->first > bytes + 64 + bytes / 50) return nullptr;
  return &found->second;
}

std::optional<bounded_time> sum_at(const std::map<std::string, curve>& curves,
                                   const std::vector<std::string>& collectives,
                                   std::int64_t bytes) {
  bounded_time sum;
  for (const std::string& name : collectives) {
    const auto times = curves.find(name);
    const bounded_time* const one = times == curves.end() ? nullptr : at(times->second, bytes);
    if (!one) return std::nullopt;
    sum.median_s += one->median_s;
    sum.low_s += one->low_s;
    sum.high_s += one->high_s;
    sum.is_certain = sum.is_certain && one->is_certain;
  }
  return sum;
}

bool exceeds(const bounded_time& a, const bounded_time& b, double factor = 1) {
  return a.median_s > least_factor * factor * b.median_s && a.low_s > factor * b.high_s;
}

}  // namespace

std::span<const guideline> guidelines() {
  static const std::array all{guideline{"all_gather", {"gather", "broadcast"}},
                              guideline{"all_gather", {"all_reduce"}},
                              guideline{"all_reduce", {"reduce", "broadcast"}},
                              guideline{"all_reduce", {"reduce_scatter_block", "all_gather"}},
                              guideline{"all_reduce", {"scan", "broadcast"}},
                              guideline{"broadcast", {"scatter", "all_gather"}},
                              guideline{"broadcast", {"all_reduce"}},
                              guideline{"exscan", {"scan"}},
                              guideline{"gather", {"all_gather"}},
                              guideline{"gather", {"reduce"}},
                              guideline{"reduce", {"all_reduce"}},
                              guideline{"reduce", {"reduce_scatter_block", "gather"}},
                              guideline{"reduce_scatter_block", {"reduce", "scatter"}},
                              guideline{"reduce_scatter_block", {"all_reduce"}},
                              guideline{"scatter", {"broadcast"}}};
  return all;
}

std::string name_of(const guideline& g) {
  std::string name = g.collective;
  for (const std::string& other : g.others)
    name += (&other == &g.others[0] ? " <= " : " + ") + other;
  return name;
}

std::vector<violation> violations_of(const bench_results& bench) {
  const std::map<std::string, curve> curves = native_curves(bench);
  std::vector<violation> found;
  for (const guideline& g : guidelines()) {
    const auto own = curves.find(g.collective);
    if (own == curves.end()) continue;
    for (const auto& [bytes, time] : own->second)
      if (const auto others = sum_at(curves, g.others, bytes); others && exceeds(time, *others))
        found.push_back({.rule = name_of(g),
                         .num_ranks = bench.num_ranks,
                         .bytes = bytes,
                         .time_s = time.median_s,
                         .others_s = others->median_s,
                         .is_certain = time.is_certain && others->is_certain});
  }
  return found;
}

std::vector<cliff> cliffs_of(const bench_results& bench) {
  std::vector<cliff> found;
  for (const auto& [name, times] : native_curves(bench))
    for (auto a = times.begin(); a != times.end(); ++a) {
      const auto b = std::next(a);
      if (b == times.end()) break;
      const double step = double(b->first) / double(std::max<std::int64_t>(1, a->first));
      if (exceeds(b->second, a->second, step) || exceeds(a->second, b->second))
        found.push_back({.collective = name,
                         .num_ranks = bench.num_ranks,
                         .from_bytes = a->first,
                         .to_bytes = b->first,
                         .from_s = a->second.median_s,
                         .to_s = b->second.median_s,
                         .is_certain = a->second.is_certain && b->second.is_certain});
    }
  return found;
}

}  // namespace railpass::internal::characterise
