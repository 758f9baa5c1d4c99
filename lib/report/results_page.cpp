// SPDX-License-Identifier: BSL-1.0
#include "lib/report/results_page.hpp"

#include "lib/report/context_life.hpp"
#include "lib/report/page.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/select/statistics/summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace railpass::internal::report {

namespace {

using select::arm_statistics, select::context_statistics, select::statistics_dump;

// Limits that keep a page short enough to read.
constexpr std::size_t most_bars = 24, most_rows = 40, most_lives = 3, most_series = 8;

std::string algorithm_of(const std::string& arm) { return arm.substr(0, arm.find('+')); }

std::string ratio_text(double ratio, double low, double high) {
  return fixed(ratio, 3) + " (" + fixed(low, 3) + " .. " + fixed(high, 3) + ")";
}

std::string short_name(const context_statistics& c) {
  const bool sized = c.collective != "barrier" && !select::is_set_context(c);
  const std::string size =
      c.mean_bytes ? format_about_bytes(*c.mean_bytes) : format_bytes(c.from_bytes);
  return c.collective + (sized ? " " + size : "") + ", " + std::to_string(c.num_ranks) + " ranks";
}

chart_series& series_of(chart& in, const std::string& name, mark drawn_as) {
  const auto found = std::ranges::find(in.series, name, &chart_series::name);
  if (found != in.series.end()) return *found;
  in.series.push_back({.name = name, .drawn_as = drawn_as});
  return in.series.back();
}

class contents {
 public:
  contents(std::span<const result_file> results, const std::string& version) : results_(results) {
    each<files::comparison>([&](const auto& file, const auto& c) { verdict(file, c); });
    each<statistics_dump>([&](const auto& file, const auto& d) { verdict(file, d); });
    each<bench_results>([&](const auto& file, const auto& b) { verdict(file, b); });
    each<files::comparison>([&](const auto&, const auto& c) { runs(c); });
    each<statistics_dump>([&](const auto& file, const auto& d) { learnt(file, d); });
    each<files::call_trace>([&](const auto& file, const auto& t) { calls(file, t); });
    each<bench_results>([&](const auto& file, const auto& b) { cells(file, b); });
    origins(version);
  }

  std::string html() const { return page_.html(); }

 private:
  template <class Kind, class Work>
  void each(Work work) {
    for (const result_file& r : results_)
      if (const Kind* const found = std::get_if<Kind>(&r.holds)) work(r.name, *found);
  }

  // The main results, one paragraph each.
  void verdict(const std::string&, const files::comparison& c) {
    page_.finding(c.verdict());
    const median_bounds ratio = bounds_of_median(c.ratios());
    page_.text("Whole runs take " + format_seconds(median(c.with_s)) + " with railpass and " +
               format_seconds(median(c.without_s)) + " without; with / without is " +
               ratio_text(median(c.ratios()), ratio.bounds.low, ratio.bounds.high) + ", with " +
               percent(ratio.confidence, 0) + " confidence, from " +
               std::to_string(c.with_s.size()) + " runs of each.");
  }

  void verdict(const std::string& file, const statistics_dump& d) {
    std::string said = select::summary_of(d);
    const std::size_t end = said.find(". ");
    page_.finding(file + ": " + said.substr(0, end == said.npos ? end : end + 1));
    if (end != said.npos) page_.text(said.substr(end + 2));
  }

  void verdict(const std::string& file, const bench_results& b) {
    std::int64_t faster = 0, slower = 0, unshown = 0;
    for (const bench_result& r : b.results) {
      if (r.arm != "tuned" || !r.ratio_to_native) continue;
      const bool few =  // runs or launches show nothing
          !r.ratio_low || !r.ratio_high ||
          (!r.launch_ratios.empty() && bounds_of_median(r.launch_ratios).confidence < 0.95);
      ++(few ? unshown : *r.ratio_high < 1 ? faster : *r.ratio_low > 1 ? slower : unshown);
    }
    if (faster + slower + unshown == 0) return;
    page_.finding(file + ": the tuned call is faster than the MPI library's own in " +
                  std::to_string(faster) + " cases, slower in " + std::to_string(slower) +
                  "; no difference is shown in " + std::to_string(unshown) + ".");
    page_.text(intervals_of(b));
  }

  static std::string intervals_of(const bench_results& b) {
    const auto launched = std::ranges::find_if(
        b.results, [](const bench_result& r) { return !r.launch_ratios.empty(); });
    if (launched == b.results.end())
      return "Intervals are of 95 % and hold within the one launch that was measured; other "
             "launches may differ by more.";
    const std::string launches = std::to_string(launched->launch_ratios.size()) + " launches";
    const double confidence = bounds_of_median(launched->launch_ratios).confidence;
    if (confidence < 0.95) return launches + " are too few for intervals, which need at least 6.";
    return "Intervals are over " + launches + ", with " + percent(confidence, 0) + " confidence.";
  }

  void runs(const files::comparison& c) {
    page_.section("The program, with and without railpass");
    std::string command;
    for (const std::string& word : c.command) command += (command.empty() ? "" : " ") + word;
    page_.code(command);
    chart times{.title = "Time of each run",
                .x = {.title = "pair of runs"},
                .y = {.title = "time", .unit = "s"},
                .series = {{.name = "without"}, {.name = "with"}}};
    for (std::size_t r = 0; r < c.with_s.size(); ++r) {
      times.x.names.push_back(std::to_string(r + 1));
      times.series[0].points.push_back({.x = double(r), .y = c.without_s[r]});
      times.series[1].points.push_back({.x = double(r), .y = c.with_s[r]});
    }
    page_.add(times);
    page_.text(c.same_output               ? "All runs had the same output."
               : c.same_output_but_numbers ? "All runs had the same output except for numbers."
                                           : "The output of the runs differs.");
  }

  void learnt(const std::string& file, const statistics_dump& d) {
    page_.section("Tuning of the program's collectives: " + file);
    if (d.contexts.empty()) {
      page_.text("No context was tuned.");
      return;
    }
    std::vector<const context_statistics*> by_time;
    for (const context_statistics& c : d.contexts) by_time.push_back(&c);
    std::ranges::stable_sort(by_time, std::greater{}, &context_statistics::time_s);
    gains(by_time);
    map_of_arms(by_time);
    tried(by_time, d);
    rails(d);
  }

  // For the contexts with the most time: the gain of the arm in use, by pairs of calls.
  void gains(const std::vector<const context_statistics*>& contexts) {
    chart gained{.title =
                     "How many times as fast as the MPI library's own the arm in use is, by "
                     "pairs of calls, with the 95 % interval; the longest in sum first",
                 .x = {.title = "context"},
                 .y = {.title = "times as fast"},
                 .series = {{.name = "speedup", .drawn_as = mark::bars}},
                 .sideways = true};
    std::size_t unmeasured = 0, more = 0;
    for (const context_statistics* c : contexts) {
      if (c->current_arm == c->baseline) continue;
      const auto arm = std::ranges::find(c->arms, c->current_arm, &arm_statistics::arm);
      if (arm == c->arms.end() || !arm->pairs || !arm->pairs->deviation) {
        ++unmeasured;
        continue;
      }
      if (gained.x.names.size() == most_bars) {
        ++more;
        continue;
      }
      const double gain = arm->pairs->gain, reach = 1.96 * *arm->pairs->deviation;
      gained.series[0].points.push_back({.x = double(gained.x.names.size()),
                                         .y = std::exp(gain),
                                         .low = std::exp(gain - reach),
                                         .high = std::exp(gain + reach),
                                         .hint = arm->arm});
      gained.x.names.push_back(short_name(*c));
    }
    if (!gained.x.names.empty()) page_.add(gained);
    say_left_out(more);
    const auto native = std::ranges::count_if(
        contexts, [](const context_statistics* c) { return c->current_arm == c->baseline; });
    page_.text(std::to_string(native) + " of " + std::to_string(contexts.size()) +
               " contexts use the MPI library's own algorithm." +
               (unmeasured > 0 ? " In " + std::to_string(unmeasured) +
                                     " contexts another arm is in use, with too few paired trials "
                                     "to estimate its gain."
                               : ""));
  }

  // Which arm is in use at which size.
  void map_of_arms(const std::vector<const context_statistics*>& contexts) {
    chart map{.title = "The arm in use, by size",
              .x = {.title = "size", .unit = "B", .logarithmic = true},
              .y = {.title = "time of a call", .unit = "s", .logarithmic = true}};
    for (const context_statistics* c : contexts) {
      const auto arm = std::ranges::find(c->arms, c->current_arm, &arm_statistics::arm);
      if (arm == c->arms.end() || arm->times.mean_s == 0) continue;
      chart_point point{
          .x = std::max(1.0, c->mean_bytes.value_or(double(c->from_bytes))),
          .y = arm->times.mean_s,
          .hint = c->collective + ", " + std::to_string(c->num_ranks) + " ranks, " + arm->arm};
      if (arm->times.quantiles.low_s > 0) {
        point.low = arm->times.quantiles.low_s;
        point.high = arm->times.quantiles.high_s;
      }
      series_of(map, algorithm_of(c->current_arm), mark::points).points.push_back(point);
    }
    if (map.series.empty()) return;
    page_.add(map);
    page_.text(
        "Mean of the timed calls; bars reach from what a tenth of the calls stay below to "
        "what a tenth exceed.");
  }

  void tried(const std::vector<const context_statistics*>& contexts, const statistics_dump& d) {
    table lines(
        {"collective", "arm in use", "calls", "time", "arms tried", "trying cost", "share"});
    double cost_s = d.merge_cost_s, time_s = 0;
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      const context_statistics& c = *contexts[i];
      cost_s += c.exploration_cost_s;
      time_s += c.time_s;
      if (i >= most_rows) continue;
      const auto tries =
          std::ranges::count_if(c.arms, [](const arm_statistics& a) { return a.calls > 0; });
      lines.add({short_name(c), c.current_arm, std::to_string(c.calls), format_seconds(c.time_s),
                 std::to_string(tries) + " of " + std::to_string(c.arms.size()),
                 format_seconds(c.exploration_cost_s),
                 c.time_s > 0 ? percent(c.exploration_cost_s / c.time_s) : "-"});
    }
    page_.text(
        "Learning cost " + format_seconds(cost_s) + " in all, " +
        (time_s > 0 ? percent(cost_s / time_s) : std::string("-")) +
        " of the time in these calls, " + format_seconds(d.merge_cost_s) +
        " of this for ranks to agree. A cost below 0 is a gain: the tried arms were faster.");
    page_.add_folded("Tried arms and their cost", lines);
    if (contexts.size() > most_rows)
      page_.text(std::to_string(contexts.size() - most_rows) + " more contexts are left out.");
  }

  void rails(const statistics_dump& d) {
    if (d.rails.empty()) return;
    chart shares{.title = "Traffic of rank 0 on each rail",
                 .x = {.title = "rail"},
                 .y = {.title = "share of the bytes", .unit = "%"},
                 .series = {{.name = "share", .drawn_as = mark::bars}}};
    table lines({"rail", "of rails", "sent", "share", "Mbit/s", "prediction off by", "busy for"});
    for (const select::rail_statistics& r : d.rails) {
      shares.series[0].points.push_back(
          {.x = double(shares.x.names.size()), .y = 100 * r.share, .hint = "of " + r.rails});
      shares.x.names.push_back(r.rail);
      lines.add({r.rail, r.rails, format_bytes(r.sent_bytes), percent(r.share),
                 fixed(r.bytes_per_s * 8e-6, 1),
                 r.prediction_error ? percent(*r.prediction_error) : "-",
                 format_seconds(r.backlog_s)});
    }
    page_.add(shares);
    page_.add_folded("Rails", lines);
  }

  // The contexts that had the most calls, call by call.
  void calls(const std::string& file, const files::call_trace& t) {
    page_.section("Call by call: " + file);
    std::map<std::string, std::size_t> of_collective;
    for (const files::traced_call& c : t.calls) ++of_collective[t.name(c.collective)];
    std::vector<std::pair<std::string, std::size_t>> most(of_collective.begin(),
                                                          of_collective.end());
    std::ranges::stable_sort(most, std::greater{}, &std::pair<std::string, std::size_t>::second);
    if (most.empty()) page_.text("The trace has no calls.");
    for (std::size_t i = 0; i < std::min(most.size(), most_lives); ++i)
      page_.add_picture(draw_context_life(t, {.collective = most[i].first}));
    if (most.size() > most_lives)
      page_.text("Calls of " + std::to_string(most.size() - most_lives) +
                 " more collectives are not drawn.");
  }

  void cells(const std::string& file, const bench_results& b) {
    page_.section("Measured side by side: " + file);
    std::vector<std::string> collectives;
    for (const bench_result& r : b.results)
      if (std::ranges::find(collectives, r.collective) == collectives.end())
        collectives.push_back(r.collective);
    ratios(b);
    for (const std::string& name : collectives) times(b, name);
  }

  void ratios(const bench_results& b) {
    chart tuned{.title = "Time of the tuned call in the MPI library's own; below 1 is faster",
                .x = {.title = "collective and size"},
                .y = {.title = "tuned / native"},
                .series = {{.name = "tuned / native"}},
                .sideways = true};
    std::size_t more = 0;
    for (const bench_result& r : b.results) {
      if (r.arm != "tuned" || !r.ratio_to_native) continue;
      if (tuned.x.names.size() == most_bars) {
        ++more;
        continue;
      }
      tuned.series[0].points.push_back({.x = double(tuned.x.names.size()),
                                        .y = *r.ratio_to_native,
                                        .low = r.ratio_low,
                                        .high = r.ratio_high});
      tuned.x.names.push_back(r.collective + " " + format_bytes(r.bytes));
    }
    if (!tuned.x.names.empty()) page_.add(tuned);
    say_left_out(more);
  }

  void say_left_out(std::size_t more) {
    if (more > 0) page_.text("The picture leaves out " + std::to_string(more) + " more.");
  }

  // Native, tuned, and the arms that are the fastest ones somewhere.
  void times(const bench_results& b, const std::string& name) {
    std::map<std::int64_t, const bench_result*> best;
    for (const bench_result& r : b.results)
      if (r.collective == name && r.arm != "tuned")
        if (auto& at = best[r.bytes]; !at || r.median_s < at->median_s) at = &r;
    std::vector<std::string> arms{"native", "tuned"};
    for (const auto& [bytes, row] : best)
      if (std::ranges::find(arms, row->arm) == arms.end() && arms.size() < most_series)
        arms.push_back(row->arm);
    chart against_size{.title = name + ", " + std::to_string(b.num_ranks) + " ranks, " +
                                std::to_string(b.ranks_per_node) + " per node",
                       .x = {.title = "size", .unit = "B", .logarithmic = true},
                       .y = {.title = "time, median", .unit = "s", .logarithmic = true}};
    table lines({"size", "arm", "median", "/native", "interval"});
    for (const std::string& arm : arms)
      for (const bench_result& r : b.results) {
        if (r.collective != name || r.arm != arm) continue;
        chart_point point{.x = double(std::max<std::int64_t>(1, r.bytes)), .y = r.median_s};
        if (r.launch_medians_s.size() > 1) {
          point.low = std::ranges::min(r.launch_medians_s);
          point.high = std::ranges::max(r.launch_medians_s);
        }
        series_of(against_size, arm, mark::curve).points.push_back(point);
        lines.add({format_bytes(r.bytes), arm, format_seconds(r.median_s),
                   r.ratio_to_native ? fixed(*r.ratio_to_native, 3) : "-",
                   r.ratio_low && r.ratio_high
                       ? fixed(*r.ratio_low, 3) + " .. " + fixed(*r.ratio_high, 3)
                       : "-"});
      }
    for (chart_series& s : against_size.series) std::ranges::sort(s.points, {}, &chart_point::x);
    if (best.size() > 1) page_.add(against_size);
    page_.add_folded(name + ", the numbers", lines);
  }

  void origins(const std::string& version) {
    page_.section("Sources of this page");
    table lines({"file", "kind", "from", "machine", "MPI library", "railpass"});
    const auto add = [&](const std::string& file, const std::string& kind, const std::string& when,
                         const fingerprint& machine, const std::string& where,
                         const std::string& with) {
      std::string text =
          std::to_string(machine.num_hosts) + (machine.num_hosts == 1 ? " host" : " hosts");
      if (machine.cores_per_host > 0)
        text += " of " + std::to_string(machine.cores_per_host) + " cores";
      if (!machine.cpu_model.empty()) text += ", " + machine.cpu_model;
      if (!where.empty()) text = where + ": " + text;
      lines.add({file, kind, when, text, machine.mpi_library, with});
    };
    const auto note = [](const bench_results& b, const char* name) {
      const auto found = b.notes.find(name);
      return found == b.notes.end() ? std::string() : found->second;
    };
    each<files::comparison>([&](const std::string& file, const files::comparison& c) {
      add(file, "comparison", c.compared_at, c.machine_id, c.host, c.railpass_version);
    });
    each<statistics_dump>([&](const std::string& file, const statistics_dump& d) {
      add(file, "statistics", d.written_at, d.machine_id, "", "");
    });
    each<bench_results>([&](const std::string& file, const bench_results& b) {
      add(file, "bench", b.measured_at, b.machine_id, note(b, "hosts"),
          note(b, "railpass_version"));
    });
    each<files::call_trace>([&](const std::string& file, const files::call_trace& t) {
      lines.add({file, "trace of " + std::to_string(t.calls.size()) + " calls", "", "", "", ""});
    });
    page_.add(lines);
    page_.text("Written by railpass " + version + ".");
  }

  std::span<const result_file> results_;
  page page_{"railpass report"};
};

}  // namespace

std::string results_page(std::span<const result_file> results,
                         const std::string& railpass_version) {
  return contents(results, railpass_version).html();
}

}  // namespace railpass::internal::report
