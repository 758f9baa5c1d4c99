// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/gains.hpp"

#include "lib/characterise/schedule.hpp"
#include "railpass/base/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace railpass::internal::characterise {
namespace {

template <class Wanted>
const bench_result* fastest_of(const bench_results& bench, const std::string& collective,
                               std::int64_t bytes, arms_of kind, Wanted wanted) {
  const bench_result* best = nullptr;
  for (const bench_result& r : bench.results) {
    const bool library = is_own_algorithm(r.arm);
    if (r.collective != collective || r.bytes != bytes || r.arm == "native" || r.arm == "tuned" ||
        !r.ratio_to_native || library != (kind == arms_of::library) || !wanted(r))
      continue;
    if (!best || *r.ratio_to_native < *best->ratio_to_native) best = &r;
  }
  return best;
}

}  // namespace

bool is_certain_gain(const bench_result& r) {
  if (r.launch_ratios.empty()) return false;
  const median_bounds likely = bounds_of_median(r.launch_ratios);
  return likely.confidence >= 0.95 && likely.bounds.high < 1;
}

const bench_result* surest(const bench_results& bench, const std::string& collective,
                           std::int64_t bytes, arms_of kind) {
  return fastest_of(bench, collective, bytes, kind, is_certain_gain);
}

const bench_result* fastest(const bench_results& bench, const std::string& collective,
                            std::int64_t bytes, arms_of kind) {
  std::size_t most = 0;
  fastest_of(bench, collective, bytes, kind, [&](const bench_result& r) {
    most = std::max(most, r.launch_ratios.size());
    return false;
  });
  return fastest_of(bench, collective, bytes, kind,
                    [&](const bench_result& r) { return 2 * r.launch_ratios.size() >= most; });
}

bool is_undecided(const bench_results& bench, const std::string& collective, std::int64_t bytes,
                  arms_of kind) {
  const bench_result* const best = fastest(bench, collective, bytes, kind);
  return best && *best->ratio_to_native <= deciding_ratio &&
         best->launch_ratios.size() < std::size_t(deciding_launches) &&
         !surest(bench, collective, bytes, kind);
}

bench_results decided(const bench_results& bench, arms_of kind) {
  const auto gains = [&](const bench_result& of, const auto& is_there) {
    return std::ranges::any_of(bench.results, [&](const bench_result& r) {
      return r.collective == of.collective && r.arm == of.arm && is_there(r.bytes) &&
             is_certain_gain(r);
    });
  };
  // An arm that gains at smaller and at larger sizes was slower here, so the size stays native.
  const auto is_cliff = [&](const bench_result& cell) {
    return std::ranges::any_of(bench.results, [&](const bench_result& r) {
      return r.collective == cell.collective && r.bytes == cell.bytes && r.arm != "native" &&
             r.ratio_to_native.value_or(0) >= 1 &&
             gains(r, [&](std::int64_t bytes) { return bytes < r.bytes; }) &&
             gains(r, [&](std::int64_t bytes) { return bytes > r.bytes; });
    });
  };
  bench_results kept = bench;
  std::erase_if(kept.results, [&](const bench_result& r) {
    return is_undecided(bench, r.collective, r.bytes, kind) && (r.arm != "native" || !is_cliff(r));
  });
  return kept;
}

std::vector<collective_gain> gains_of(const bench_results& bench) {
  std::vector<collective_gain> all;
  for (const bench_result& r : bench.results) {
    if (r.arm != "native") continue;
    auto of = std::ranges::find(all, r.collective, &collective_gain::collective);
    if (of == all.end())
      of = all.insert(of, {.collective = r.collective, .num_ranks = bench.num_ranks});
    of->sizes.push_back(r.bytes);
  }
  for (collective_gain& of : all) {
    std::ranges::sort(of.sizes);
    const auto mean_of = [&](arms_of kind) {
      double sum = 0;
      for (const std::int64_t bytes : of.sizes)
        if (const bench_result* const r = surest(bench, of.collective, bytes, kind))
          sum += std::log(*r->ratio_to_native);
      return std::exp(sum / double(of.sizes.size()));
    };
    of.undecided = int(std::ranges::count_if(of.sizes, [&](const std::int64_t bytes) {
      return is_undecided(bench, of.collective, bytes, arms_of::library) ||
             is_undecided(bench, of.collective, bytes, arms_of::railpass);
    }));
    of.library_ratio = mean_of(arms_of::library);
    of.railpass_ratio = mean_of(arms_of::railpass);
  }
  return all;
}

}  // namespace railpass::internal::characterise
