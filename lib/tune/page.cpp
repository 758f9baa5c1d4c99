// SPDX-License-Identifier: BSL-1.0
//
// The page of a tuning: the recommendation, equally good combinations, and effects.
#include "lib/report/page.hpp"

#include "lib/report/style.hpp"
#include "lib/tune/results.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace railpass::internal::tune {

namespace {

using railpass::internal::report::chart, railpass::internal::report::chart_point,
    railpass::internal::report::mark, railpass::internal::report::number;
using lines = railpass::internal::report::table;

std::string percentage(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * fraction);
  return text;
}

class contents {
 public:
  explicit contents(const report& r) : r_(r), goal_(r.found.measured.goals().front()) {}

  std::string html() {
    page_.code(r_.command);
    summary();
    groups();
    effects();
    if (r_.weights.size() == 2) front();
    failures();
    return page_.html();
  }

 private:
  bool two_goals() const { return r_.weights.size() == 2; }
  // For two goals, the mean has no unit.
  std::string unit() const { return two_goals() ? "" : goal_.unit; }
  std::string shown(double score) const {
    const double value = r_.shown(score);
    return unit() == "s" ? format_seconds(value)
                         : number(value) + (unit().empty() ? "" : " " + unit());
  }
  std::string settings(const combination& c) const {
    std::string text;
    for (const auto& [name, value] : r_.where.settings(c))
      text += (text.empty() ? "" : ", ") + name + " = " + value;
    return text;
  }

  void summary() {
    page_.finding(r_.finding());
    if (const auto best = r_.recommended()) {
      lines recommended({"parameter", "recommended", "default"});
      for (const auto& [name, value] : r_.where.settings(*best)) {
        std::string usual;
        for (const parameter& p : r_.where.parameters())
          if (p.name == name && p.default_value) usual = *p.default_value;
        recommended.add({name, value, usual});
      }
      page_.add(recommended);
    }
    constexpr std::uint64_t most_counted = 10000000;
    const std::uint64_t all = r_.where.count(condition_rule::first_value, most_counted);
    page_.text(std::to_string(r_.found.runs) + " launches, " +
               std::to_string(r_.found.measured.records().size()) + " of " + std::to_string(all) +
               (all == most_counted ? " or more" : "") + " combinations, " +
               format_seconds(r_.found.spent_s) + " in the command, search " + r_.plan.search +
               ". " + r_.noise_sentence() +
               (r_.found.complete ? "" : " Time ran out before the search had ended."));
  }

  void groups() {
    page_.section("Equally good combinations");
    page_.text("Combinations of a group cannot be told apart from its best; values of " +
               goal_.name + ", " + (goal_.higher_is_better ? "higher" : "lower") + " is better.");
    if (r_.groups.empty()) return;
    const standings ranks(r_.found.measured, r_.weights, r_.plan.wanted);
    const std::size_t rows = std::min<std::size_t>(r_.groups.size(), 20);
    chart best{.title = "The best of each group, with the interval in which it is likely to lie",
               .x = {.title = "group"},
               .y = {.title = two_goals() ? "mean of both" : goal_.name, .unit = unit()},
               .series = {{.name = "best of the group"}}};
    lines list({"group", best.y.title, "combinations", "one of them"});
    for (std::size_t i = 0; i < rows; ++i) {
      const tie_group& g = r_.groups[i];
      const std::string name = std::to_string(i + 1);
      chart_point p{.x = double(i), .y = r_.shown(g.score), .hint = settings(g.members.front())};
      for (const standing& s : ranks.all())
        if (s.of->what == g.members.front())
          if (const double margin = ranks.margin(s.error); margin > 0) {
            const auto [low, high] =
                std::minmax({r_.shown(s.score - margin), r_.shown(s.score + margin)});
            p.low = low;
            p.high = high;
          }
      best.x.names.push_back(name);
      best.series[0].points.push_back(p);
      list.add(
          {name, shown(g.score), std::to_string(g.members.size()), settings(g.members.front())});
    }
    page_.add(best);
    page_.add(list);
    if (rows < r_.groups.size())
      page_.text(std::to_string(r_.groups.size() - rows) + " groups are worse.");
    constexpr std::size_t most_listed = 40;
    const auto& members = r_.groups.front().members;
    lines combinations({"combination"});
    for (std::size_t i = 0; i < std::min(members.size(), most_listed); ++i)
      combinations.add({settings(members[i])});
    page_.add_folded("The best group", combinations);
  }

  void effects() {
    std::vector<const effect*> shown;
    for (const effect& e : r_.effects)
      if (e.shown) shown.push_back(&e);
    page_.section("Parameters that matter");
    if (shown.empty()) {
      page_.text("No parameter is shown to matter beyond what launches vary by.");
      return;
    }
    const std::size_t rows = std::min<std::size_t>(shown.size(), 12);
    chart shares{.title =
                     "Share of the variation that a parameter explains, or two together beyond "
                     "what each does alone",
                 .x = {.title = "parameter"},
                 .y = {.title = "share of the variation", .unit = "%"},
                 .series = {{.name = "one parameter", .drawn_as = mark::bars},
                            {.name = "two together", .drawn_as = mark::bars}},
                 .sideways = true};
    for (std::size_t i = 0; i < rows; ++i) {
      const effect& e = *shown[i];
      std::string names;
      for (const std::size_t p : e.parameters)
        names += (names.empty() ? "" : " with ") + r_.where.parameters()[p].name;
      shares.x.names.push_back(names);
      shares.series[e.parameters.size() == 1 ? 0 : 1].points.push_back(
          {.x = double(i), .y = 100 * std::min(e.share, 1.0)});
    }
    std::erase_if(shares.series, [](const auto& s) { return s.points.empty(); });
    page_.add(shares);
    page_.text(
        "How much worse each value is than the best value, averaged over the other "
        "parameters; bars with their " +
        percentage(r_.plan.wanted.confidence) + " interval:");
    const double z = normal_quantile((1 + r_.plan.wanted.confidence) / 2);
    std::size_t pictures = 0;
    for (const effect* shown_one : shown) {
      const effect& e = *shown_one;
      if (e.parameters.size() != 1 || ++pictures > 8) continue;
      const parameter& p = r_.where.parameters()[e.parameters[0]];
      chart levels{.title = p.name,
                   .x = {.title = "value"},
                   .y = {.title = "worse by", .unit = "%"},
                   .series = {{.name = "worse by", .drawn_as = mark::bars}}};
      for (std::size_t i = 0; i < std::min<std::size_t>(e.levels.size(), 32); ++i) {
        chart_point point{.x = double(i), .y = 100 * std::expm1(e.levels[i])};
        if (e.errors[i] > 0 && std::isfinite(e.errors[i])) {
          point.low = 100 * std::expm1(e.levels[i] - z * e.errors[i]);
          point.high = 100 * std::expm1(e.levels[i] + z * e.errors[i]);
        }
        levels.x.names.push_back(p.values[i]);
        levels.series[0].points.push_back(point);
      }
      page_.add(levels);
    }
  }

  double value_of(const record& measured, std::size_t goal) const {
    std::vector<double> scores;
    for (const auto& s : measured.scores) scores.push_back(s[goal]);
    return r_.found.measured.value_of(typical_score(scores), goal);
  }

  void front() {
    const auto& goals = r_.found.measured.goals();
    page_.section(goals[0].name + " against " + goals[1].name);
    chart both{.title =
                   "No combination is better than the Pareto front in one metric and as good in "
                   "the other metric",
               .x = {.title = goals[0].name, .unit = goals[0].unit, .logarithmic = true},
               .y = {.title = goals[1].name, .unit = goals[1].unit, .logarithmic = true},
               .series = {{.name = "Pareto front"}, {.name = "others"}}};
    for (const auto& [what, measured] : r_.found.measured.records()) {
      if (measured.failed()) continue;
      const bool on_front = std::find(r_.front.begin(), r_.front.end(), what) != r_.front.end();
      both.series[on_front ? 0 : 1].points.push_back(
          {.x = value_of(measured, 0), .y = value_of(measured, 1), .hint = settings(what)});
    }
    page_.add(both);
    lines list({goals[0].name, goals[1].name, "combination"});
    for (const combination& c : r_.front) {
      const record& measured = *r_.found.measured.find(c);
      list.add({number(value_of(measured, 0)), number(value_of(measured, 1)), settings(c)});
    }
    page_.add(list);
  }

  void failures() {
    if (r_.failures.empty()) return;
    page_.section("Failed");
    lines list({"combinations", "why", "one of them"});
    for (const auto& [message, combinations] : r_.failures)
      list.add({std::to_string(combinations.size()), message, settings(combinations.front())});
    page_.add(list);
  }

  const report& r_;
  const goal& goal_;
  railpass::internal::report::page page_{"railpass tune"};
};

}  // namespace

std::string to_html(const report& r) { return contents(r).html(); }

}  // namespace railpass::internal::tune
