// SPDX-License-Identifier: BSL-1.0
//
// Which calls take another time since the MPI library, the kernel or drivers of a machine changed,
// from the runs before and after. The unit is the run: calls within a run share what a run is
// lucky or unlucky with.
//
// Intervals: Welch, Biometrika 1947 (doi:10.1093/biomet/34.1-2.28). At most 5 % of the named
// changes are expected to be false: Benjamini, Hochberg, Journal of the Royal Statistical Society B
// 1995 (doi:10.1111/j.2517-6161.1995.tb02031.x).
#pragma once

#include "railpass/base/student.hpp"
#include "railpass/base/units.hpp"
#include "railpass/knowledge/collection.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace railpass::knowledge {

/// The marks of a machine that an upgrade changes. An empty mark is unknown.
struct surroundings {
  std::string mpi_library{}, kernel{}, drivers{};
  friend auto operator<=>(const surroundings&, const surroundings&) = default;
};
inline surroundings surroundings_of(const run_record& r) {
  return {without_names(r.machine.mpi_library), r.was.kernel, r.was.drivers};
}

/// "MPI library A instead of B, kernel C instead of D".
inline std::string text_of_change(const surroundings& before, const surroundings& now) {
  std::string text;
  const auto add = [&](const char* what, const std::string& then, const std::string& here) {
    if (then == here) return;
    const auto named = [](const std::string& name) { return name.empty() ? "unknown" : name; };
    text.append(text.empty() ? "" : ", ").append(what).append(" ").append(named(here));
    text.append(" instead of ").append(named(then));
  };
  add("MPI library", before.mpi_library, now.mpi_library);
  add("kernel", before.kernel, now.kernel);
  add("drivers", before.drivers, now.drivers);
  return text;
}

/// Calls of a kind and size class, in the runs before and after a change.
struct cell_change {
  problem of{};            ///< of the smallest size of its class
  bool is_native = false;  ///< by the MPI library's own; else by the arm that each run used most
  std::size_t runs_before = 0, runs_now = 0;
  double before_s = 0, now_s = 0;       ///< geometric means over the runs of their median times
  double ratio = 1, low = 1, high = 1;  ///< of now to before, with a 95 % interval
  bool is_shown = false;                ///< significant beside all cells of the comparison
};

/// A comparison of the latest surroundings of a machine with those before. (A machine that had them
/// earlier, too, has had them since the last run in others.)
struct upgrade {
  fingerprint machine{};  ///< the MPI library is the latest
  surroundings before{}, now{};
  std::string since{};  ///< UTC: the first run in the latest surroundings
  std::size_t runs_before = 0, runs_now = 0;
  std::vector<cell_change> cells{};  ///< with enough runs, the largest ratio first
  std::size_t too_few = 0;           ///< cells with fewer runs
};

/// The least number of runs on each side.
inline constexpr std::size_t least_runs = 3;

namespace detail {

struct log_times {
  double mean = 0, squared_error = 0;  // of the mean
  double freedom = 1;
};
inline log_times of_runs(std::span<const double> logs) {
  constexpr double least_spread = 0.01;  // what clocks and rounding do
  const auto n = double(logs.size());
  log_times all{.freedom = n - 1};
  for (const double x : logs) all.mean += x / n;
  double squares = 0;
  for (const double x : logs) squares += (x - all.mean) * (x - all.mean);
  all.squared_error = std::max(squares / (n - 1), least_spread * least_spread) / n;
  return all;
}

struct tested_change {
  cell_change cell;
  double chance;
};
inline tested_change compared(cell_change cell, std::span<const double> before,
                              std::span<const double> now) {
  const log_times b = of_runs(before), n = of_runs(now);
  const double error2 = b.squared_error + n.squared_error;
  const double freedom = error2 * error2 /
                         (b.squared_error * b.squared_error / b.freedom +
                          n.squared_error * n.squared_error / n.freedom);
  const double gain = n.mean - b.mean, error = std::sqrt(error2);
  const double reach = students_t(freedom, 0.05) * error;
  cell.runs_before = before.size();
  cell.runs_now = now.size();
  cell.before_s = std::exp(b.mean);
  cell.now_s = std::exp(n.mean);
  cell.ratio = std::exp(gain);
  cell.low = std::exp(gain - reach);
  cell.high = std::exp(gain + reach);
  return {std::move(cell), two_sided(gain / error, freedom)};
}

inline std::vector<cell_change> judged(std::vector<tested_change> all) {
  constexpr double false_share = 0.05;
  std::ranges::sort(all, {}, &tested_change::chance);
  std::size_t shown = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].chance <= false_share * double(i + 1) / double(all.size())) shown = i + 1;
  std::vector<cell_change> cells;
  for (std::size_t i = 0; i < all.size(); ++i) {
    cells.push_back(std::move(all[i].cell));
    cells.back().is_shown = i < shown;
  }
  std::ranges::stable_sort(cells, std::greater{}, &cell_change::ratio);
  return cells;
}

inline const arm_experience* most_used(const experience& e) {
  const auto most = std::ranges::max_element(e.arms, {}, &arm_experience::calls);
  return most == e.arms.end() ? nullptr : &*most;
}

}  // namespace detail

/// Compares each machine's latest surroundings with those that it had until then. Machines that
/// have changed nothing are left out; so are runs that are merged with others.
inline std::vector<upgrade> upgrades_of(std::span<const stored_run> runs) {
  using machine_key = std::tuple<std::string, int, std::string, bool>;
  std::map<machine_key, std::vector<const run_record*>> machines;
  for (const stored_run& r : runs) {
    const fingerprint& m = r.run.machine;
    if (r.ids.size() == 1)
      machines[{m.cpu_model, m.cores_per_host, m.rails, m.num_hosts > 1}].push_back(&r.run);
  }
  std::vector<upgrade> all;
  for (auto& [key, here] : machines) {
    std::ranges::stable_sort(here, {}, &run_record::ended_at);
    const surroundings now = surroundings_of(*here.back());
    const auto before = std::find_if(here.rbegin(), here.rend(), [&](const run_record* r) {
      return surroundings_of(*r) != now;
    });
    if (before == here.rend()) continue;
    upgrade u{.machine = here.back()->machine, .before = surroundings_of(**before), .now = now};
    using cell_key = std::tuple<std::string, std::string, int, int, std::string, std::string,
                                std::uint8_t, bool>;
    std::map<cell_key, std::pair<std::vector<double>, std::vector<double>>> cells;
    for (auto at = here.begin(); at != here.end(); ++at) {
      const run_record* const r = *at;
      const bool is_now = at >= before.base();
      if (!is_now && surroundings_of(*r) != u.before) continue;
      ++(is_now ? u.runs_now : u.runs_before);
      if (is_now && u.since.empty()) u.since = r->ended_at;
      // A run may have several contexts of a cell.
      std::map<cell_key, std::vector<double>> of_run;
      for (const experience& e : r->contexts) {
        const auto add = [&](bool is_native, const arm_experience& a) {
          of_run[{e.of.collective, e.of.operation, e.of.num_ranks, e.of.ranks_per_node, e.of.kind,
                  e.of.rails, select::size_class_of(e.of.bytes), is_native}]
              .push_back(std::log(a.times.quantiles.median_s));
        };
        for (const arm_experience& a : e.arms)
          if (a.arm == "native") add(true, a);
        const arm_experience* const most = detail::most_used(e);
        if (most && most->arm != "native") add(false, *most);
      }
      for (const auto& [cell, logs] : of_run)
        (is_now ? cells[cell].second : cells[cell].first)
            .push_back(std::accumulate(logs.begin(), logs.end(), 0.0) / double(logs.size()));
    }
    std::vector<detail::tested_change> tested;
    for (const auto& [cell, sides] : cells) {
      const auto& [then, since] = sides;
      if (then.size() < least_runs || since.size() < least_runs) {
        ++u.too_few;
        continue;
      }
      const auto& [collective, operation, ranks, ranks_per_node, kind, rails, size_class,
                   is_native] = cell;
      tested.push_back(detail::compared({.of = {.collective = collective,
                                                .operation = operation,
                                                .num_ranks = ranks,
                                                .ranks_per_node = ranks_per_node,
                                                .kind = kind,
                                                .rails = rails,
                                                .bytes = select::smallest_bytes(size_class)},
                                         .is_native = is_native},
                                        then, since));
    }
    u.cells = detail::judged(std::move(tested));
    all.push_back(std::move(u));
  }
  return all;
}

/// One sentence: what changed, and how many kinds of calls take longer or shorter; empty if too few
/// runs can be compared.
inline std::string summary_of(const upgrade& u) {
  if (u.cells.empty()) return {};
  std::size_t slower = 0, faster = 0;
  const cell_change* worst = nullptr;
  for (const cell_change& c : u.cells) {
    if (!c.is_shown) continue;
    ++(c.ratio > 1 ? slower : faster);
    if (!worst) worst = &c;
  }
  std::string text = "since " + u.since.substr(0, 10) + " (" + text_of_change(u.before, u.now) +
                     ") " + std::to_string(slower) + " of " + std::to_string(u.cells.size()) +
                     " kinds of calls take longer and " + std::to_string(faster) + " shorter";
  if (worst && worst->ratio > 1) {
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.2f", worst->ratio);
    text += "; the most: " + worst->of.collective + " of " + format_bytes(worst->of.bytes) +
            " on " + std::to_string(worst->of.num_ranks) + " ranks, " + ratio + " times as long";
  }
  return text + ". Details: railpass knowledge compare";
}

}  // namespace railpass::knowledge
