// SPDX-License-Identifier: BSL-1.0
//
// The page of a tuning: what is recommended, and four pictures as inline SVG.
#include "lib/report/drawing.hpp"
#include "lib/report/xml.hpp"
#include "lib/tune/results.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace railpass::tune {

namespace {

using railpass::report::drawing, railpass::report::ink, railpass::report::number,
    railpass::report::xml_text;

constexpr std::string_view best_colour = railpass::report::colours[0], other_colour = "#8fa3ad";

std::string shortened(std::string text, std::size_t longest) {
  if (text.size() > longest) text = text.substr(0, longest - 3) + "...";
  return text;
}

std::string percentage(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * fraction);
  return text;
}

class page {
 public:
  explicit page(const report& r) : r_(r), goal_(r.found.measured.goals().front()) {}

  std::string text() {
    body_ += "<h1>railpass tune</h1>\n<p><code>" + xml_text(r_.command) + "</code></p>\n";
    summary();
    groups();
    effects();
    if (r_.weights.size() == 2) front();
    failures();
    return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
           "<title>railpass tune</title>\n<style>"
           "body{font:16px/1.45 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:" +
           std::string(ink) +
           "}code{background:#eef2f4;padding:.1em .3em;overflow-wrap:anywhere}"
           "table{border-collapse:collapse;margin:.7rem 0}td,th{text-align:left;padding:.2rem "
           ".9rem .2rem 0;border-bottom:1px solid #dde4e8;vertical-align:top}"
           "svg{max-width:100%;height:auto}svg text{font:12px sans-serif;fill:" +
           std::string(ink) +
           "}h2{margin-top:2.2rem}.big{font-size:1.5rem}</style></head>\n<body>" + body_ +
           "</body></html>\n";
  }

 private:
  std::string shown(double score) const {
    const double value = r_.shown(score);
    if (r_.weights.size() == 2) return number(value);
    return goal_.unit == "s" ? format_seconds(value)
                             : number(value) + (goal_.unit.empty() ? "" : " " + goal_.unit);
  }
  std::string settings(const combination& c) const {
    std::string text;
    for (const auto& [name, value] : r_.where.settings(c))
      text += (text.empty() ? "" : ", ") + name + " = " + value;
    return text;
  }

  void summary() {
    if (r_.found.recommended) {
      if (const auto& gain = r_.found.gain_over_default)
        body_ += "<p class=\"big\">" + percentage(gain->value) + " better than the default (" +
                 percentage(r_.plan.wanted.confidence) + " interval " + percentage(gain->low) +
                 " to " + percentage(gain->high) + ")</p>\n";
      body_ += "<table><tr><th>parameter</th><th>recommended</th><th>default</th></tr>\n";
      for (const auto& [name, value] : r_.where.settings(*r_.found.recommended)) {
        std::string usual;
        for (const parameter& p : r_.where.parameters())
          if (p.name == name && p.default_value) usual = *p.default_value;
        body_ += "<tr><td>" + xml_text(name) + "</td><td><b>" + xml_text(value) + "</b></td><td>" +
                 xml_text(usual) + "</td></tr>\n";
      }
      body_ += "</table>\n";
    }
    body_ += "<p>" + std::to_string(r_.found.runs) + " launches, " +
             std::to_string(r_.found.measured.records().size()) + " of " +
             std::to_string(r_.where.count(condition_rule::first_value, 10000000)) +
             " combinations, " + format_seconds(r_.found.spent_s) + " in the command, search " +
             xml_text(r_.plan.search) + ". The value of one launch varies by " +
             percentage(r_.found.noise) + "." +
             (r_.found.complete ? "" : " Time ran out before the search had ended.") + "</p>\n";
  }

  void groups() {
    body_ +=
        "<h2>Equally good combinations</h2>\n<p>Combinations of a group cannot be told apart "
        "from its best; values of " +
        xml_text(goal_.name) + ", " + (goal_.higher_is_better ? "higher" : "lower") +
        " is better.</p>\n";
    if (r_.groups.empty()) return;
    const std::size_t rows = std::min<std::size_t>(r_.groups.size(), 20);
    std::size_t most = 1;
    for (std::size_t i = 0; i < rows; ++i) most = std::max(most, r_.groups[i].members.size());
    drawing d(720, 24 * double(rows) + 10);
    for (std::size_t i = 0; i < rows; ++i) {
      const tie_group& g = r_.groups[i];
      const double y = 24 * double(i) + 5;
      const double width = 480 * double(g.members.size()) / double(most);
      d.text(110, y + 14, shown(g.score), {.anchor = "end"});
      d.rectangle(120, y, width, 19, i ? other_colour : best_colour, settings(g.members.front()));
      d.text(126 + width, y + 14, std::to_string(g.members.size()));
    }
    body_ += d.svg();
    if (rows < r_.groups.size())
      body_ += "<p>" + std::to_string(r_.groups.size() - rows) + " groups are worse.</p>\n";
    constexpr std::size_t most_listed = 40;
    const auto& best = r_.groups.front().members;
    body_ += "<details><summary>The best group</summary><table>\n";
    for (std::size_t i = 0; i < std::min(best.size(), most_listed); ++i)
      body_ += "<tr><td>" + xml_text(settings(best[i])) + "</td></tr>\n";
    body_ += "</table></details>\n";
  }

  void effects() {
    if (r_.effects.empty()) return;
    body_ +=
        "<h2>What matters</h2>\n<p>Share of the variation that a parameter explains, or two "
        "together beyond what each does alone.</p>\n";
    const std::size_t rows = std::min<std::size_t>(r_.effects.size(), 12);
    drawing d(720, 24 * double(rows) + 10);
    for (std::size_t i = 0; i < rows; ++i) {
      const effect& e = r_.effects[i];
      std::string names;
      for (const std::size_t p : e.parameters)
        names += (names.empty() ? "" : " with ") + r_.where.parameters()[p].name;
      const double y = 24 * double(i) + 5;
      d.text(310, y + 14, shortened(names, 48), {.anchor = "end"});
      d.rectangle(320, y, 320 * std::min(e.share, 1.0), 19,
                  e.parameters.size() == 1 ? best_colour : other_colour, names);
      d.text(326 + 320 * std::min(e.share, 1.0), y + 14, percentage(e.share));
    }
    body_ += d.svg();
    body_ +=
        "<p>How much worse each value is than the best one, the other parameters averaged "
        "over.</p>\n";
    std::size_t pictures = 0;
    for (const effect& e : r_.effects) {
      if (e.parameters.size() != 1 || e.share < 0.005 || ++pictures > 8) continue;
      const parameter& p = r_.where.parameters()[e.parameters[0]];
      const std::size_t count = std::min<std::size_t>(e.levels.size(), 32);
      double worst = 0.01;
      for (const double level : e.levels) worst = std::max(worst, std::expm1(level));
      drawing levels(720, 170);
      levels.text(0, 14, p.name + " (up to " + percentage(worst) + ")");
      const double step = 700 / double(count);
      levels.line(0, 140, 700, 140);
      for (std::size_t i = 0; i < count; ++i) {
        const double worse = std::expm1(e.levels[i]);
        const double height = 110 * worse / worst;
        levels.rectangle(double(i) * step + 2, 140 - height, step - 4, height,
                         worse < 0.01 ? best_colour : other_colour,
                         p.values[i] + ": " + percentage(worse));
        levels.text((double(i) + 0.5) * step, 156,
                    shortened(p.values[i], std::size_t(std::max(3.0, step / 7))),
                    {.anchor = "middle"});
      }
      body_ += levels.svg();
    }
  }

  double value_of(const record& measured, std::size_t goal) const {
    std::vector<double> scores;
    for (const auto& s : measured.scores) scores.push_back(s[goal]);
    return r_.found.measured.value_of(typical_score(scores), goal);
  }

  void front() {
    const auto& goals = r_.found.measured.goals();
    body_ +=
        "<h2>" + xml_text(goals[0].name) + " against " + xml_text(goals[1].name) +
        "</h2>\n<p>Nothing is better in one and as good in the other than what is marked.</p>\n";
    double low[2] = {1e300, 1e300}, high[2] = {0, 0};
    for (const auto& [what, measured] : r_.found.measured.records())
      for (std::size_t g = 0; g < 2 && !measured.failed(); ++g) {
        low[g] = std::min(low[g], value_of(measured, g));
        high[g] = std::max(high[g], value_of(measured, g));
      }
    drawing d(720, 420);
    const auto place = [&](const record& measured, std::size_t g) {
      const double range = std::max(std::log(high[g] / low[g]), 1e-9);
      return std::log(value_of(measured, g) / low[g]) / range;
    };
    d.line(60, 380, 700, 380);
    d.line(60, 380, 60, 20);
    for (const bool marked : {false, true})
      for (const auto& [what, measured] : r_.found.measured.records()) {
        const bool on_front = std::find(r_.front.begin(), r_.front.end(), what) != r_.front.end();
        if (measured.failed() || on_front != marked) continue;
        d.circle(70 + 610 * place(measured, 0), 370 - 340 * place(measured, 1), marked ? 5 : 3,
                 marked ? best_colour : other_colour, settings(what));
      }
    d.text(60, 396, number(low[0]));
    d.text(700, 396, number(high[0]), {.anchor = "end"});
    d.text(380, 412, goals[0].name + ", logarithmic", {.anchor = "middle"});
    d.text(55, 380, number(low[1]), {.anchor = "end"});
    d.text(55, 32, number(high[1]), {.anchor = "end"});
    body_ += d.svg() + "<table>\n";
    for (const combination& c : r_.front) {
      const record& measured = *r_.found.measured.find(c);
      body_ += "<tr><td>" + number(value_of(measured, 0)) + "</td><td>" +
               number(value_of(measured, 1)) + "</td><td>" + xml_text(settings(c)) + "</td></tr>\n";
    }
    body_ += "</table>\n";
  }

  void failures() {
    if (r_.failures.empty()) return;
    body_ +=
        "<h2>Failed</h2>\n<table><tr><th>combinations</th><th>why</th><th>one of "
        "them</th></tr>\n";
    for (const auto& [message, combinations] : r_.failures)
      body_ += "<tr><td>" + std::to_string(combinations.size()) + "</td><td>" + xml_text(message) +
               "</td><td>" + xml_text(settings(combinations.front())) + "</td></tr>\n";
    body_ += "</table>\n";
  }

  const report& r_;
  const goal& goal_;
  std::string body_;
};

}  // namespace

std::string to_html(const report& r) { return page(r).text(); }

}  // namespace railpass::tune
