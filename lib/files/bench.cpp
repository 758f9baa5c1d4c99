// SPDX-License-Identifier: BSL-1.0
#include "lib/files/files.hpp"
#include "lib/files/shared_parts.hpp"

namespace railpass::internal::files {

namespace {

constexpr std::string_view format = "railpass bench";
constexpr int version = 1;

}  // namespace

std::string to_json(const bench_results& b) {
  json environment{{"machine_id", fingerprint_json(b.machine_id)},
                   {"measured_at", b.measured_at},
                   {"num_ranks", b.num_ranks},
                   {"ranks_per_node", b.ranks_per_node},
                   {"notes", b.notes}};
  if (b.ranks_per_cache > 0) environment["ranks_per_cache"] = b.ranks_per_cache;
  if (b.notes.empty()) environment["notes"] = json::object();
  json results = json::array();
  for (const bench_result& r : b.results) {
    json j{{"collective", r.collective}, {"bytes", r.bytes}, {"arm", r.arm},
           {"median_s", r.median_s},     {"p90_s", r.p90_s}, {"runs", r.runs}};
    // Always there: its readers divide by nothing else.
    if (r.ratio_to_native)
      j["ratio_to_native"] = *r.ratio_to_native;
    else
      j["ratio_to_native"] = nullptr;
    put_optional(j, "ratio_low", r.ratio_low);
    put_optional(j, "ratio_high", r.ratio_high);
    put_optional(j, "ratio_to_best", r.ratio_to_best);
    put_optional(j, "best_low", r.best_low);
    put_optional(j, "best_high", r.best_high);
    put_optional(j, "spread_s", r.spread_s);
    if (!r.launch_medians_s.empty()) j["launch_medians_s"] = r.launch_medians_s;
    if (!r.launch_ratios.empty()) j["launch_ratios"] = r.launch_ratios;
    results.push_back(std::move(j));
  }
  json learning = json::array();
  for (const learning_result& l : b.learning)
    learning.push_back({{"collective", l.collective},
                        {"bytes", l.bytes},
                        {"first_call", l.first_call},
                        {"calls", l.calls},
                        {"total_s", l.total_s},
                        {"native_total_s", l.native_total_s},
                        {"ratio_to_native", l.ratio_to_native},
                        {"native_low", l.native_low},
                        {"native_high", l.native_high},
                        {"best_arm", l.best_arm},
                        {"best_total_s", l.best_total_s},
                        {"ratio_to_best", l.ratio_to_best},
                        {"worst_call_s", l.worst_call_s},
                        {"best_median_s", l.best_median_s},
                        {"best_worst_call_s", l.best_worst_call_s}});
  return document_text({{"format", format},
                        {"version", version},
                        {"environment", std::move(environment)},
                        {"results", std::move(results)},
                        {"learning", std::move(learning)}});
}

bench_results parse_bench(std::string_view text, const std::string& name) {
  const json_document document(text, name);
  const json_reader top = document.expect(format, version);
  top.expect_fields({"format", "version", "environment", "results", "learning"});
  const json_reader environment = top.field("environment");
  environment.expect_fields(
      {"machine_id", "measured_at", "num_ranks", "ranks_per_node", "ranks_per_cache", "notes"});
  bench_results b;
  b.machine_id = read_fingerprint(environment.field("machine_id"));
  b.measured_at = environment.text("measured_at");
  b.num_ranks = int(environment.integer("num_ranks", 1, largest_count));
  b.ranks_per_node = int(environment.integer("ranks_per_node", 1, largest_count));
  if (environment.has("ranks_per_cache"))
    b.ranks_per_cache = int(environment.integer("ranks_per_cache", 1, largest_count));
  b.notes = environment.texts("notes");
  for (const json_reader& r : top.list("results")) {
    r.expect_fields({"collective", "bytes", "arm", "median_s", "p90_s", "runs", "ratio_to_native",
                     "ratio_low", "ratio_high", "ratio_to_best", "best_low", "best_high",
                     "spread_s", "launch_medians_s", "launch_ratios"});
    const auto by_launch = [&](std::string_view key) {
      return r.has(key) ? r.positives(key) : std::vector<double>();
    };
    b.results.push_back({.collective = r.name("collective"),
                         .bytes = r.integer("bytes"),
                         .arm = r.name("arm"),
                         .median_s = r.positive("median_s"),
                         .p90_s = r.positive("p90_s"),
                         .runs = r.integer("runs", 1),
                         .ratio_to_native = r.optional_number("ratio_to_native"),
                         .ratio_low = r.optional_number("ratio_low"),
                         .ratio_high = r.optional_number("ratio_high"),
                         .ratio_to_best = r.optional_number("ratio_to_best"),
                         .best_low = r.optional_number("best_low"),
                         .best_high = r.optional_number("best_high"),
                         .spread_s = r.optional_number("spread_s"),
                         .launch_medians_s = by_launch("launch_medians_s"),
                         .launch_ratios = by_launch("launch_ratios")});
  }
  for (const json_reader& l : top.list("learning")) {
    l.expect_fields({"collective", "bytes", "first_call", "calls", "total_s", "native_total_s",
                     "ratio_to_native", "native_low", "native_high", "best_arm", "best_total_s",
                     "ratio_to_best", "worst_call_s", "best_median_s", "best_worst_call_s"});
    b.learning.push_back({.collective = l.name("collective"),
                          .bytes = l.integer("bytes"),
                          .first_call = l.integer("first_call", 1),
                          .calls = l.integer("calls", 1),
                          .total_s = l.positive("total_s"),
                          .native_total_s = l.positive("native_total_s"),
                          .ratio_to_native = l.positive("ratio_to_native"),
                          .native_low = l.positive("native_low"),
                          .native_high = l.positive("native_high"),
                          .best_arm = l.name("best_arm"),
                          .best_total_s = l.positive("best_total_s"),
                          .ratio_to_best = l.positive("ratio_to_best"),
                          .worst_call_s = l.positive("worst_call_s"),
                          .best_median_s = l.positive("best_median_s"),
                          .best_worst_call_s = l.positive("best_worst_call_s")});
  }
  return b;
}

bench_results read_bench(const std::string& path) { return parse_bench(read_text(path), path); }

}  // namespace railpass::internal::files
