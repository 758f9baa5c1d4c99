// SPDX-License-Identifier: BSL-1.0
//
// Extracts everything that a fit can use from every kind of file.
#include "lib/files/bench_fields.hpp"
#include "lib/files/files.hpp"
#include "lib/files/samples_fields.hpp"
#include "lib/files/statistics_fields.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/knowledge/imports.hpp"

#include <algorithm>

namespace railpass::internal::files {

namespace {

/// Assumed spread of single runs: the typical spread of runs that were repeated.
double usual_spread(const std::vector<double>& of_several) {
  // For collectives of 8 B to 256 KiB on 4 and 8 ranks that shared two cores, mostly 0.2 to 0.5.
  constexpr double unknown = 0.35;
  return of_several.empty() ? unknown : median(of_several);
}

constexpr std::int64_t several_runs = 5;

/// Tuned calls are a mixture of arms. The MPI library's own algorithms have no closed form.
std::vector<collective_time> times_of(const bench_results& bench) {
  std::vector<double> spreads;
  for (const bench_result& r : bench.results)
    if (r.spread_s && r.runs >= several_runs) spreads.push_back(*r.spread_s / r.median_s);
  const double usual = usual_spread(spreads);
  std::vector<collective_time> result;
  for (const bench_result& r : bench.results)
    if (r.arm != "tuned" && !is_own_algorithm(r.arm))
      result.push_back({.collective = r.collective,
                        .arm = r.arm,
                        .num_ranks = bench.num_ranks,
                        .ranks_per_node = bench.ranks_per_node,
                        .bytes = r.bytes,
                        .median_s = r.median_s,
                        .runs = independent_runs(r),
                        .run_spread = std::max(usual, r.spread_s.value_or(0) / r.median_s),
                        .ranks_per_cache = bench.ranks_per_cache});
  return result;
}

}  // namespace

// No closed form knows the time of the user's operation. The model does not predict native, so
// nothing would correct the times of a few calls of native, which may be the first calls of all.
measurements measurements_of(std::span<const knowledge::experience> contexts) {
  std::vector<double> spreads;
  for (const knowledge::experience& e : contexts)
    for (const knowledge::arm_experience& a : e.arms)
      if (a.times.samples >= several_runs) spreads.push_back(a.times.spread);
  const double usual = usual_spread(spreads);
  measurements result;
  for (const knowledge::experience& e : contexts) {
    if (e.of.operation.starts_with("user")) continue;
    for (const knowledge::arm_experience& a : e.arms)
      if (a.arm != "native" || a.times.samples >= several_runs)
        result.collectives.push_back({.collective = e.of.collective,
                                      .arm = a.arm,
                                      .num_ranks = e.of.num_ranks,
                                      .ranks_per_node = e.of.ranks_per_node,
                                      .bytes = e.of.bytes,
                                      .median_s = a.times.quantiles.median_s,
                                      .runs = a.times.samples,
                                      .run_spread = std::max(usual, a.times.spread)});
  }
  return result;
}

std::string format_of(std::string_view text, const std::string& name) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return {};
  const nlohmann::json document = parse_json(text, name);
  const auto format = document.find("format");
  return format != document.end() && format->is_string() ? format->get<std::string>() : "";
}

measurements read_measurements(const std::string& path, const import_facts& facts) {
  const std::string text = read_text(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) throw error(path + ": the file is empty");
  if (text[first] != '{') {
    if (text.find("# OSU MPI") != std::string::npos) return parse_osu(text, path, facts);
    if (text.find("# Benchmarking ") != std::string::npos) return parse_imb(text, path, facts);
    throw error(path +
                ": expected samples, bench results or statistics of railpass, or the output of "
                "OSU micro-benchmarks or IMB-MPI1");
  }
  const std::string format = json_document(text, path).format();
  if (format == format_for<sample_set>.name) return parse_samples(text, path).measured;
  if (format == format_for<bench_results>.name)
    return {.collectives = times_of(parse_bench(text, path))};
  if (format == format_for<select::statistics_dump>.name)
    return measurements_of(knowledge::record_of(parse_statistics(text, path)).contexts);
  throw error(path + ": a file of format '" + format +
              "' holds no measurements; expected railpass samples, bench or statistics");
}

}  // namespace railpass::internal::files
