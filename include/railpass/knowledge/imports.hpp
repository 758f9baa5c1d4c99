// SPDX-License-Identifier: BSL-1.0
//
// Converts other results to knowledge: statistics dumps and bench results.
#pragma once

#include "collectives/registry.hpp"
#include "models/samples.hpp"
#include "railpass/knowledge/experience.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace railpass::knowledge {

namespace detail {

/// Quantiles from mean and spread, for normally distributed logarithms.
inline select::time_quantiles quantiles_of(double mean_s, double spread) {
  constexpr double of_a_tenth = 1.2816;
  const double median_s = mean_s * std::exp(-spread * spread / 2);
  return {.low_s = median_s * std::exp(-of_a_tenth * spread),
          .median_s = median_s,
          .high_s = median_s * std::exp(of_a_tenth * spread)};
}

/// The size of the context's problem. Mean sizes differ a little from run to run, so they are
/// rounded to six binary digits: such runs are then of one problem.
inline std::int64_t size_of(const select::context_statistics& c) {
  if (c.first_bytes <= 0) return c.from_bytes;
  if (!c.mean_bytes || c.from_bytes == c.to_bytes) return c.first_bytes;
  int exponent = 0;
  const double digits = std::ldexp(std::frexp(double(c.first_bytes), &exponent), 6);
  constexpr double most = 0x1p53;  // as in all files
  return std::llround(std::min(most, std::ldexp(std::round(digits), exponent - 6)));
}

}  // namespace detail

inline run_record record_of(const select::statistics_dump& dump) {
  run_record run{.machine = dump.machine_id, .ended_at = dump.written_at};
  for (const select::context_statistics& c : dump.contexts) {
    if (mixes_sizes(c)) continue;
    experience e{.of = {.collective = c.collective,
                        .operation = c.operation.empty() ? "none" : c.operation,
                        .num_ranks = c.num_ranks,
                        .ranks_per_node = c.ranks_per_node,
                        .kind = kind_of(c.communicator),
                        .rails = c.rails,
                        .bytes = detail::size_of(c)},
                 .first_at = dump.written_at,
                 .last_at = dump.written_at};
    for (const select::arm_statistics& a : c.arms) {
      if (a.times.samples == 0 || a.times.mean_s == 0) continue;
      e.arms.push_back(
          {.arm = a.arm, .calls = a.calls, .times = a.times, .prior = a.prior, .pairs = a.pairs});
      select::sampled_times& times = e.arms.back().times;
      if (times.quantiles.median_s == 0)
        times.quantiles = detail::quantiles_of(times.mean_s, times.spread);
    }
    if (!e.arms.empty()) run.contexts.push_back(std::move(e));
  }
  return run;
}

/// Tuned calls are a mixture of arms, and no call can take the MPI library's own algorithms: both
/// are left out.
inline run_record record_of(const bench_results& bench) {
  run_record run{.machine = bench.machine_id, .ended_at = bench.measured_at};
  run.machine.rails.clear();  // as of any run: its problems have them
  for (const bench_result& r : bench.results) {
    if (r.arm == "tuned" || is_own_algorithm(r.arm)) continue;
    const auto op = find_collective(r.collective);
    const problem of{.collective = r.collective,
                     .operation = std::string(select::operation_class_names[std::size_t(
                         op && traits_of(*op).reduces ? select::operation_class::builtin
                                                      : select::operation_class::none)]),
                     .num_ranks = bench.num_ranks,
                     .ranks_per_node = bench.ranks_per_node,
                     .kind = "world",
                     .rails = bench.machine_id.rails,
                     .bytes = r.bytes};
    auto e = std::ranges::find(run.contexts, of, &experience::of);
    if (e == run.contexts.end())
      e = run.contexts.insert(
          e, {.of = of, .first_at = bench.measured_at, .last_at = bench.measured_at});
    if (std::ranges::find(e->arms, r.arm, &arm_experience::arm) != e->arms.end()) continue;
    const double spread = r.spread_s.value_or(0) / r.median_s;
    select::time_quantiles quantiles = detail::quantiles_of(r.median_s, spread);
    quantiles.median_s = r.median_s;
    quantiles.high_s = std::max(r.p90_s, r.median_s);
    e->arms.push_back({.arm = r.arm,
                       .calls = r.runs,
                       .times = {.samples = independent_runs(r),
                                 .mean_s = r.median_s,
                                 .spread = spread,
                                 .quantiles = quantiles}});
  }
  return run;
}

}  // namespace railpass::knowledge
