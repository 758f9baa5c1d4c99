// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/bench_tables.hpp"

#include "collectives/registry.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/version.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <vector>

namespace railpass::internal::measure {
namespace {

// The fastest arms come first; a table shows few arms unless --all is given.
struct rows_shown {
  std::vector<const bench_result*> rows{};
  std::size_t left_out = 0;
};
rows_shown choose(const std::vector<bench_result>& cell, bool all, const report::output& out) {
  constexpr std::size_t most_arms = 10;
  std::vector<const bench_result*> sorted;
  for (const bench_result& row : cell) sorted.push_back(&row);
  std::ranges::stable_sort(sorted, {}, &bench_result::median_s);
  rows_shown shown;
  std::size_t arms = 0;
  for (const bench_result* row : sorted) {
    const bool always = row->arm == "native" || row->arm == "tuned";
    if (!always && ++arms > most_arms && !all && !out.csv)
      ++shown.left_out;
    else
      shown.rows.push_back(row);
  }
  return shown;
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fixed(*ratio, 3) : "-";
}
std::string range_text(const std::optional<double>& low, const std::optional<double>& high) {
  return low && high ? fixed(*low, 3) + ".." + fixed(*high, 3) : "-";
}

// Arms that are shown to be faster, and a tuned call that is shown to be slower, stand out.
report::tone tone_of(const bench_result& row) {
  if (row.arm == "native" || !row.ratio_low || !row.ratio_high) return report::tone::plain;
  if (*row.ratio_high < 1) return report::tone::good;
  return row.arm == "tuned" && *row.ratio_low > 1 ? report::tone::bad : report::tone::plain;
}

void print_left_out(const rows_shown& shown, report::output& out) {
  if (shown.left_out > 0)
    out.words() << shown.left_out << " slower arms are measured but not shown (--all shows them)\n";
}

void print_learning(const learning_result& l, report::output& out) {
  out.words() << "calls " << l.first_call << " to " << l.first_call + l.calls - 1 << ": "
              << format_seconds(l.total_s) << ", " << fixed(l.total_s / l.native_total_s, 3)
              << " x native's (pairs " << fixed(l.ratio_to_native, 3)
              << (l.native_low ? ", " + fixed(*l.native_low, 3) + ".." + fixed(*l.native_high, 3)
                               : "")
              << "), " << fixed(l.total_s / l.best_total_s, 3) << " x those of " << l.best_arm
              << " (pairs " << fixed(l.ratio_to_best, 3) << "); the slowest took "
              << format_seconds(l.worst_call_s) << ", "
              << fixed(l.worst_call_s / l.best_median_s, 2) << " x its median (its own slowest "
              << fixed(l.best_worst_call_s / l.best_median_s, 2) << " x)\n";
}

// The verdict on tuned against native; none if the launches contradict each other.
std::string verdict(const bench_result& tuned) {
  const median_bounds ratio = bounds_of_median(tuned.launch_ratios);
  if (ratio.confidence < 0.95) return "Too few launches: a 95 % interval needs at least 6.\n";
  const std::string sure = ", with " + percent(ratio.confidence, 0) + " confidence.\n";
  if (ratio.bounds.high < 1) return "The tuned call is faster than native" + sure;
  if (ratio.bounds.low > 1) return "The tuned call is slower than native" + sure;
  return "No difference between the tuned call and native is shown.\n";
}

}  // namespace

std::string title_of(const std::string& name, std::int64_t bytes) {
  const bool any_size = describe(*find_collective(name)).what == promise::all_arrive;
  return name + (any_size ? "" : " of " + format_bytes(bytes));
}

void print_cell(const cell_result& cell, const std::string& title, bool all, report::output& out) {
  const rows_shown shown = choose(cell.rows, all, out);
  report::table lines({"arm", "median", "p90", "spread", "runs", "/native", "95 %", "/best arm"});
  for (const bench_result* row : shown.rows)
    lines.add({row->arm, format_seconds(row->median_s), format_seconds(row->p90_s),
               percent(row->spread_s.value_or(0) / row->median_s), std::to_string(row->runs),
               ratio_text(row->ratio_to_native), range_text(row->ratio_low, row->ratio_high),
               ratio_text(row->ratio_to_best)},
              tone_of(*row));
  out.words() << title << '\n' << out.printed(lines, title);
  print_left_out(shown, out);
  if (cell.late_rounds > 0)
    out.words() << cell.late_rounds << " rounds were left out because a rank was late\n";
  if (!cell.tuned_arm.empty()) out.words() << "chosen by tuning: " << cell.tuned_arm << '\n';
  if (!cell.left_out.empty()) {
    out.words() << cell.left_out.size()
                << " arms were left out, the first: " << cell.left_out[0].first << ", "
                << cell.left_out[0].second << '\n';
  }
  for (const learning_result& l : cell.learning) print_learning(l, out);
  out.words() << std::endl;
}

void print_where(const bench_results& all, report::output& out) {
  out.words() << all.measured_at << ", railpass " RAILPASS_VERSION ", "
              << all.machine_id.mpi_library << "\n"
              << all.num_ranks << " ranks, at most " << all.ranks_per_node << " per node, on "
              << all.machine_id.num_hosts << " hosts; " << all.machine_id.cpu_model
              << (all.machine_id.rails.empty() ? "" : "; arms over " + all.machine_id.rails)
              << "\nprofile: "
              << (all.notes.at("profile").empty() ? "none, generic constants"
                                                  : all.notes.at("profile"))
              << "\n\n";
}

void print_launches(const bench_results& all, int launches, bool show_all, report::output& out) {
  print_where(all, out);
  for (std::size_t from = 0, to = 0; from < all.results.size(); from = to) {
    const bench_result& first = all.results[from];
    while (to < all.results.size() && all.results[to].collective == first.collective &&
           all.results[to].bytes == first.bytes)
      ++to;
    const std::vector<bench_result> cell(all.results.begin() + std::ptrdiff_t(from),
                                         all.results.begin() + std::ptrdiff_t(to));
    const rows_shown shown = choose(cell, show_all, out);
    report::table lines(
        {"arm", "median", "least", "most", "launches", "/native", "interval", "/best arm"});
    for (const bench_result* row : shown.rows)
      lines.add({row->arm, format_seconds(row->median_s),
                 format_seconds(std::ranges::min(row->launch_medians_s)),
                 format_seconds(std::ranges::max(row->launch_medians_s)),
                 std::to_string(row->launch_medians_s.size()), ratio_text(row->ratio_to_native),
                 range_text(row->ratio_low, row->ratio_high), ratio_text(row->ratio_to_best)},
                tone_of(*row));
    const std::string title = title_of(first.collective, first.bytes);
    out.words() << title << '\n' << out.printed(lines, title);
    print_left_out(shown, out);
    for (const bench_result& row : cell)
      if (row.arm == "tuned" && !row.launch_ratios.empty()) out.words() << verdict(row);
    for (const learning_result& l : all.learning)
      if (l.collective == first.collective && l.bytes == first.bytes) print_learning(l, out);
    out.words() << '\n';
  }
  const std::vector<double> any(std::size_t(launches), 1.0);
  const double confidence = bounds_of_median(any).confidence;
  out.words() << "Median, least and most refer to the medians of launches; "
              << (confidence < 0.95
                      ? std::to_string(launches) +
                            " launches are too few for intervals, which need at least 6\n"
                      : "intervals of /native refer to " + std::to_string(launches) +
                            " launches, with " + percent(confidence, 0) + " confidence\n");
}

}  // namespace railpass::internal::measure
