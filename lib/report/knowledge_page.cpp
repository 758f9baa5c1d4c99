// SPDX-License-Identifier: BSL-1.0
#include "lib/report/knowledge_page.hpp"

#include "lib/report/knowledge_analysis.hpp"
#include "lib/report/page.hpp"
#include "railpass/base/units.hpp"
#include "railpass/knowledge/freeze.hpp"
#include "railpass/knowledge/groups.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace railpass::internal::report {

namespace {

using knowledge::arm_experience, knowledge::experience, knowledge::group, knowledge::run_record;

// Bounds keep the page short enough to read.
constexpr std::size_t most_charts = 24, most_series = 8, most_rows = 40;

std::string algorithm_of(const std::string& arm) { return arm.substr(0, arm.find('+')); }

std::string name_of(const knowledge::problem& p) {
  return format_bytes(p.bytes) + ", " + shape_of(p);
}

std::string times_text(double factor) { return fixed(factor, 2) + " times"; }

const arm_experience* find(const experience& of, std::string_view arm) {
  const auto found = std::ranges::find(of.arms, arm, &arm_experience::arm);
  return found == of.arms.end() ? nullptr : &*found;
}

double median_of(const arm_experience& a) { return a.times.quantiles.median_s; }

/// Number of the group's problems in which each arm is the best.
std::vector<std::pair<std::size_t, std::size_t>> winners_of(const group& g,
                                                            const knowledge::analysis& found) {
  std::map<std::size_t, std::size_t> wins;
  for (std::size_t i = 0; i < found.size(); ++i) ++wins[std::size_t(found.winner(i))];
  std::vector<std::pair<std::size_t, std::size_t>> result(wins.begin(), wins.end());
  std::ranges::stable_sort(result, std::greater{}, &std::pair<std::size_t, std::size_t>::second);
  const auto native = std::size_t(std::ranges::find(g.arms, "native") - g.arms.begin());
  // Native is the reference and always listed.
  if (native < g.arms.size() && !wins.contains(native)) result.insert(result.begin(), {native, 0});
  return result;
}

class contents {
 public:
  contents(std::span<const experience> known, std::span<const run_record> runs)
      : known_(known), groups_(knowledge::groups_of(known)) {
    for (const run_record& r : runs) runs_.push_back(&r);
    std::ranges::stable_sort(runs_, {}, &run_record::ended_at);
  }

  std::string html() {
    summary();
    std::set<std::pair<std::string, std::string>> collectives;
    for (const group& g : groups_) collectives.emplace(g.of.collective, g.of.operation);
    for (const auto& [collective, operation] : collectives) {
      page_.section(collective + (operation == "none" ? "" : ", operation " + operation));
      std::vector<const group*> its;
      for (const group& g : groups_)
        if (g.of.collective == collective && g.of.operation == operation) its.push_back(&g);
      best_arms(its);
      for (const group* g : its) times(*g);
      changes(collective, operation);
    }
    if (charts_left_out_ > 0)
      page_.text("Times of " + std::to_string(charts_left_out_) +
                 " more numbers of ranks or kinds of communicators are not shown.");
    wrong();
    return page_.html();
  }

 private:
  void summary() {
    if (known_.empty() && runs_.empty()) {
      page_.text("Nothing has been learnt yet.");
      return;
    }
    std::string first, last;
    std::int64_t calls = 0;
    for (const experience& e : known_) {
      if (first.empty() || e.first_at < first) first = e.first_at;
      last = std::max(last, e.last_at);
      for (const arm_experience& a : e.arms) calls += a.calls;
    }
    page_.text(std::to_string(known_.size()) + " contexts, " + std::to_string(calls) + " calls" +
               (first.empty() ? "" : ", of runs from " + first + " to " + last) + ".");
    if (runs_.empty()) return;
    table lines({"run ended", "contexts", "railpass", "governor", "load"});
    for (std::size_t i = runs_.size(); i-- > 0 && runs_.size() - i <= most_rows;) {
      const run_record& r = *runs_[i];
      lines.add({r.ended_at, std::to_string(r.contexts.size()), r.was.railpass_version,
                 r.was.governor, r.was.load ? fixed(*r.was.load, 1) : "-"});
    }
    page_.add_folded(std::to_string(runs_.size()) + " runs", lines);
  }

  /// A map for each kind of communicators.
  void best_arms(const std::vector<const group*>& its) {
    const auto kind_of = [](const knowledge::problem& p) {
      return std::tuple(p.ranks_per_node, p.kind, p.rails);
    };
    std::map<std::tuple<int, std::string, std::string>, std::vector<const group*>> kinds;
    for (const group* g : its) kinds[kind_of(g->of)].push_back(g);
    for (const auto& [kind, groups] : kinds) {
      const auto& [ranks_per_node, communicator, rails] = kind;
      chart best{.title = "The best arm: " + std::to_string(ranks_per_node) + " ranks per node, " +
                          communicator + (rails.empty() ? "" : ", rails " + rails),
                 .x = {.title = "size", .unit = "B", .logarithmic = true},
                 .y = {.title = "ranks", .logarithmic = true}};
      for (const group* g : groups) {
        const knowledge::analysis found(g->problems);
        for (std::size_t i = 0; i < found.size(); ++i) {
          const knowledge::instance& at = found.problem(i);
          const std::string& arm = g->arms[std::size_t(found.winner(i))];
          chart_point p{.x = std::max(1.0, at.coordinates.front()),
                        .y = double(g->of.num_ranks),
                        .hint = arm};
          const double seconds = at.arms[std::size_t(found.winner(i))]->seconds;
          p.hint += ", " + format_seconds(seconds);
          const auto native = std::size_t(std::ranges::find(g->arms, "native") - g->arms.begin());
          if (arm != "native" && native < g->arms.size() && at.arms[native])
            p.hint += ", native " + times_text(at.arms[native]->seconds / seconds);
          series(best, algorithm_of(arm)).points.push_back(std::move(p));
        }
      }
      page_.add(best);
    }
  }

  /// Times of native and of each arm that is the best for some problem.
  void times(const group& g) {
    const knowledge::analysis found(g.problems);
    const auto winners = winners_of(g, found);
    if (g.problems.size() < 2 || charts_ == most_charts) {
      charts_left_out_ += g.problems.size() < 2 ? 0 : 1;
      return;
    }
    ++charts_;
    chart against_size{.title = "Times: " + shape_of(g.of) +
                                "; the band reaches from the 10 % to the 90 % "
                                "quantile of calls",
                       .x = {.title = "size", .unit = "B", .logarithmic = true},
                       .y = {.title = "time", .unit = "s", .logarithmic = true}};
    for (std::size_t w = 0; w < std::min(winners.size(), most_series); ++w) {
      const std::string& arm = g.arms[winners[w].first];
      chart_series s{.name = arm, .drawn_as = mark::curve};
      for (const knowledge::instance& i : g.problems) {
        const auto& t = i.arms[winners[w].first];
        if (!t) continue;
        chart_point p{.x = std::max(1.0, i.coordinates.front()), .y = t->seconds};
        for (const std::size_t c : g.contexts) {
          const arm_experience* a = find(known_[c], arm);
          if (!a || double(known_[c].of.bytes) != i.coordinates.front()) continue;
          const select::time_quantiles& q = a->times.quantiles;
          p.low = p.low ? std::min(*p.low, q.low_s) : q.low_s;
          p.high = p.high ? std::max(*p.high, q.high_s) : q.high_s;
        }
        s.points.push_back(p);
      }
      against_size.series.push_back(std::move(s));
    }
    page_.add(against_size);
  }

  /// Gain of the best arm in each run, for the contexts of most runs.
  void changes(const std::string& collective, const std::string& operation) {
    struct seen {
      std::size_t run = 0;
      const experience* what = nullptr;
    };
    std::map<std::string, std::vector<seen>> contexts;
    for (std::size_t r = 0; r < runs_.size(); ++r)
      for (const experience& e : runs_[r]->contexts)
        if (e.of.collective == collective && e.of.operation == operation && !e.arms.empty())
          contexts[name_of(e.of)].push_back({r, &e});
    std::erase_if(contexts, [](const auto& c) { return c.second.size() < 2; });
    if (contexts.empty()) return;
    using entry = std::pair<std::string, std::vector<seen>>;
    std::vector<entry> by_runs(contexts.begin(), contexts.end());
    std::ranges::stable_sort(by_runs, std::greater{},
                             [](const entry& c) { return c.second.size(); });

    chart over_runs{.title = "From run to run: the best arm's time in native's",
                    .x = {.title = "run"},
                    .y = {.title = "best / native", .logarithmic = true}};
    for (const run_record* r : runs_) over_runs.x.names.push_back(r->ended_at);
    table lines({"context", "run", "best arm", "before"});
    std::size_t rows = 0, changed = 0;
    for (const auto& [name, its] : by_runs) {
      chart_series s{.name = name, .drawn_as = mark::curve};
      const arm_experience* before = nullptr;
      for (const seen& at : its) {
        const arm_experience *best = knowledge::best_arm_of(*at.what),
                             *native = find(*at.what, "native");
        if (native)
          s.points.push_back({.x = double(at.run),
                              .y = median_of(*best) / median_of(*native),
                              .hint = best->arm + ", " + format_seconds(median_of(*best))});
        if (before && before->arm != best->arm) {
          ++changed;
          if (++rows <= most_rows)
            lines.add({name, runs_[at.run]->ended_at, best->arm, before->arm});
        }
        before = best;
      }
      if (over_runs.series.size() < most_series && !s.points.empty())
        over_runs.series.push_back(std::move(s));
    }
    if (!over_runs.series.empty()) page_.add(over_runs);
    page_.text(std::to_string(contexts.size()) +
               " contexts were used by several runs; the best arm changed " +
               std::to_string(changed) + " times.");
    if (!lines.empty()) page_.add_folded("Changes", lines);
  }

  /// Predicted times against measured times.
  void wrong() {
    struct error {
      const experience* of = nullptr;
      const arm_experience* arm = nullptr;
      double log_ratio = 0;
      bool wrong = false;
    };
    std::vector<error> all;
    for (const experience& e : known_)
      for (const arm_experience& a : e.arms)
        if (a.prior && a.prior->mean_s > 0) {
          const double off = std::log(a.times.mean_s / a.prior->mean_s),
                       measured = a.times.spread / std::sqrt(double(a.times.samples));
          all.push_back({&e, &a, off, std::abs(off) > 2 * std::hypot(a.prior->spread, measured)});
        }
    if (all.empty()) return;
    constexpr std::size_t most_points = 2000;
    std::ranges::stable_sort(all, std::greater{}, [](const error& e) {
      return std::pair(e.wrong, std::abs(e.log_ratio));
    });
    const auto wrong = std::ranges::count_if(all, &error::wrong);
    page_.section("Errors of knowledge");
    page_.text(
        std::to_string(wrong) + " of " + std::to_string(all.size()) +
        " predictions missed the measured time by more than twice the combined uncertainty." +
        (all.size() > most_points
             ? " The picture shows the worst " + std::to_string(most_points) + "."
             : ""));
    chart both{.title = "Predicted against measured",
               .x = {.title = "predicted", .unit = "s", .logarithmic = true},
               .y = {.title = "measured", .unit = "s", .logarithmic = true},
               .series = {{.name = "wrong"}, {.name = "as predicted"}}};
    table lines({"context", "arm", "predicted", "measured", "ratio"});
    for (std::size_t i = 0; i < std::min(all.size(), most_points); ++i) {
      const error& e = all[i];
      both.series[e.wrong ? 0 : 1].points.push_back(
          {.x = e.arm->prior->mean_s,
           .y = e.arm->times.mean_s,
           .hint = e.arm->arm + ", " + name_of(e.of->of)});
      if (e.wrong && i < most_rows)
        lines.add({name_of(e.of->of), e.arm->arm, format_seconds(e.arm->prior->mean_s),
                   format_seconds(e.arm->times.mean_s), fixed(std::exp(e.log_ratio), 2)});
    }
    page_.add(both);
    if (!lines.empty()) page_.add(lines);
  }

  static chart_series& series(chart& of, const std::string& name) {
    const auto found = std::ranges::find(of.series, name, &chart_series::name);
    if (found != of.series.end()) return *found;
    of.series.push_back({.name = name});
    return of.series.back();
  }

  std::span<const experience> known_;
  std::vector<group> groups_;
  std::vector<const run_record*> runs_;  // the oldest first
  std::size_t charts_ = 0, charts_left_out_ = 0;
  page page_{"railpass knowledge"};
};

}  // namespace

std::string knowledge_page(std::span<const knowledge::experience> known,
                           std::span<const knowledge::run_record> runs) {
  return contents(known, runs).html();
}

}  // namespace railpass::internal::report
