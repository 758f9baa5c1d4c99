// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/page.hpp"

#include "lib/characterise/gains.hpp"
#include "lib/characterise/guidelines.hpp"
#include "lib/report/page.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace railpass::internal::characterise {
namespace {

using report::chart, report::chart_point, report::table;

class contents {
 public:
  contents(const outcome& o, const std::string& version) : outcome_(o) {
    verdict();
    gain_table();
    what_to_do();
    violations();
    cliffs();
    for (const libraries::named_bench& one : o.benches) times(one.bench);
    rules();
    page_.text(std::to_string(o.launches) + " launches in " + format_seconds(o.measured_s) +
               ", measured on " + o.benches.front().bench.measured_at + ", " +
               o.benches.front().bench.machine_id.mpi_library + ". Written by railpass " + version +
               ".");
  }

  std::string html() const { return page_.html(); }

 private:
  void verdict() {
    std::size_t cells = 0, by_library = 0, by_railpass = 0;
    for (const libraries::named_bench& one : outcome_.benches)
      for (const collective_gain& g : gains_of(one.bench))
        for (const std::int64_t bytes : g.sizes) {
          ++cells;
          by_library += surest(one.bench, g.collective, bytes, arms_of::library) ? 1 : 0;
          by_railpass += surest(one.bench, g.collective, bytes, arms_of::railpass) ? 1 : 0;
        }
    page_.finding("Of " + std::to_string(cells) + " measured calls, " + std::to_string(by_library) +
                  " are faster by another algorithm of the MPI library, and " +
                  std::to_string(by_railpass) + " by an algorithm of railpass.");
    page_.text(
        "A call is a collective at one size on one number of ranks. A gain counts if the 95 % "
        "interval over the launches excludes the MPI library's default.");
    for (const std::string& sentence : outcome_.left_out) page_.text(sentence + ".");
  }

  void gain_table() {
    page_.section("Gain over the default");
    table lines(
        {"collective", "ranks", "sizes", "the library's own / default", "railpass / default"}, 2);
    for (const libraries::named_bench& one : outcome_.benches)
      for (const collective_gain& g : gains_of(one.bench))
        lines.add({g.collective, std::to_string(g.num_ranks), std::to_string(g.sizes.size()),
                   fixed(g.library_ratio, 3), fixed(g.railpass_ratio, 3)});
    page_.add(lines);
    page_.text(
        "Geometric means over the sizes of the time in the default's, with the fastest arm of a "
        "certain gain at each size, or else the default.");
  }

  void what_to_do() {
    page_.section("Use of the results");
    for (const std::string& sentence : advice(outcome_)) page_.text(sentence);
  }

  void violations() {
    page_.section("Guidelines that the defaults violate");
    table lines({"guideline", "ranks", "size", "time", "their time", "factor"}, 3);
    table uncertain = lines;
    for (const libraries::named_bench& one : outcome_.benches)
      for (const violation& v : violations_of(one.bench))
        (v.is_certain ? lines : uncertain)
            .add({v.rule, std::to_string(v.num_ranks), format_bytes(v.bytes),
                  format_seconds(v.time_s), format_seconds(v.others_s),
                  fixed(v.time_s / v.others_s, 2)});
    if (lines.empty())
      page_.text(
          "No measured collective is shown to be slower than others that do the same work "
          "together.");
    else
      page_.add(lines);
    add_uncertain(uncertain);
  }

  void add_uncertain(const table& lines) {
    if (!lines.empty()) page_.add_folded("Seen in too few launches to be certain", lines);
  }

  void cliffs() {
    page_.section("Cliffs of the defaults");
    table lines({"collective", "ranks", "from", "to", "time", "time after", "times the size",
                 "times the time"},
                4);
    table uncertain = lines;
    for (const libraries::named_bench& one : outcome_.benches)
      for (const cliff& c : cliffs_of(one.bench))
        (c.is_certain ? lines : uncertain)
            .add({c.collective, std::to_string(c.num_ranks), format_bytes(c.from_bytes),
                  format_bytes(c.to_bytes), format_seconds(c.from_s), format_seconds(c.to_s),
                  fixed(double(c.to_bytes) / double(c.from_bytes), 2),
                  fixed(c.to_s / c.from_s, 2)});
    if (lines.empty())
      page_.text("The time is not shown to grow more than the size, or to fall as the size grows.");
    else
      page_.add(lines);
    add_uncertain(uncertain);
    if (!lines.empty() || !uncertain.empty())
      page_.text(
          "Between these sizes the time grows more than the size, or a smaller message takes "
          "longer than a larger message.");
  }

  void times(const bench_results& b) {
    page_.section("Time against size on " + std::to_string(b.num_ranks) + " ranks, " +
                  std::to_string(b.ranks_per_node) + " per node");
    for (const collective_gain& g : gains_of(b)) {
      chart drawn{.title = g.collective,
                  .x = {.title = "size", .unit = "B", .logarithmic = true},
                  .y = {.title = "time, median", .unit = "s", .logarithmic = true},
                  .series = {{.name = "default", .drawn_as = report::mark::curve},
                             {.name = "the library's fastest", .drawn_as = report::mark::curve},
                             {.name = "railpass's fastest", .drawn_as = report::mark::curve}}};
      table lines({"size", "default", "the library's fastest", "/default", "railpass's fastest",
                   "/default "});
      for (const std::int64_t bytes : g.sizes) {
        const bench_result* const native = native_of(b, g.collective, bytes);
        const bench_result* const own = fastest(b, g.collective, bytes, arms_of::library);
        const bench_result* const ours = fastest(b, g.collective, bytes, arms_of::railpass);
        add(drawn.series[0], native);
        add(drawn.series[1], own);
        add(drawn.series[2], ours);
        lines.add({format_bytes(bytes), format_seconds(native->median_s), own ? own->arm : "-",
                   ratio_of(own), ours ? ours->arm : "-", ratio_of(ours)});
      }
      std::erase_if(drawn.series, [](const auto& s) { return s.points.empty(); });
      if (g.sizes.size() > 1) page_.add(drawn);
      page_.add_folded(g.collective + ", the numbers", lines);
    }
  }

  static const bench_result* native_of(const bench_results& b, const std::string& collective,
                                       std::int64_t bytes) {
    return &*std::ranges::find_if(b.results, [&](const bench_result& r) {
      return r.collective == collective && r.bytes == bytes && r.arm == "native";
    });
  }

  static void add(report::chart_series& to, const bench_result* r) {
    if (!r) return;
    chart_point point{.x = double(std::max<std::int64_t>(1, r->bytes)), .y = r->median_s};
    if (r->launch_medians_s.size() > 1) {
      point.low = std::ranges::min(r->launch_medians_s);
      point.high = std::ranges::max(r->launch_medians_s);
    }
    point.hint = r->arm;
    to.points.push_back(std::move(point));
  }

  static std::string ratio_of(const bench_result* r) {
    if (!r) return "-";
    const std::string interval =
        r->ratio_low && r->ratio_high
            ? " (" + fixed(*r->ratio_low, 3) + " .. " + fixed(*r->ratio_high, 3) + ")"
            : "";
    return fixed(*r->ratio_to_native, 3) + interval;
  }

  void rules() {
    page_.section("Rules and plan");
    if (!outcome_.rules_path.empty()) {
      table lines({"collective", "ranks", "from", "to", "algorithm", "segment", "/default"}, 3);
      for (const libraries::rules_of_collective& of : outcome_.rules.collectives)
        for (const libraries::rules_of_ranks& here : of.ranks)
          for (const libraries::rule& r : here.rules)
            lines.add({std::string(name_of(of.op)), std::to_string(here.num_ranks),
                       format_bytes(r.from_bytes), format_bytes(r.to_bytes), r.algorithm.name,
                       r.segment_bytes > 0 ? format_bytes(r.segment_bytes) : "-",
                       fixed(r.ratio, 3)});
      page_.add(lines);
      page_.text("Limits of the file of rules:");
      for (const std::string& limit : outcome_.rule_limits) page_.text(limit);
    }
    if (!outcome_.rules.left_out.empty()) {
      table lines({"measured, but without a rule"});
      for (const std::string& one : outcome_.rules.left_out) lines.add({one});
      page_.add_folded("Measured, but without a rule", lines);
    }
    if (outcome_.plan_path.empty()) return;
    table lines({"collective", "ranks", "per node", "from", "below", "variant"}, 5);
    for (const knowledge::planned_calls& c : outcome_.plan)
      lines.add({c.collective, std::to_string(c.num_ranks), std::to_string(c.ranks_per_node),
                 format_bytes(c.from_bytes), c.to_bytes ? format_bytes(*c.to_bytes + 1) : "any",
                 c.variant});
    page_.add_folded("The plan", lines);
  }

  const outcome& outcome_;
  report::page page_{"railpass characterise"};
};

}  // namespace

std::string page_of(const outcome& o, const std::string& railpass_version) {
  return contents(o, railpass_version).html();
}

}  // namespace railpass::internal::characterise
