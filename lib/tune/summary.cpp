// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/summary.hpp"

#include "railpass/base/units.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace railpass::internal::tune {
namespace {

using cells = railpass::internal::report::table;

std::string shown_value(double value, const goal& g) {
  if (g.unit == "s") return format_seconds(value);
  char text[64];
  std::snprintf(text, sizeof text, "%.5g%s%s", value, g.unit.empty() ? "" : " ", g.unit.c_str());
  return text;
}

std::string settings_text(const space& where, const combination& c) {
  std::string text;
  for (const auto& [name, value] : where.settings(c))
    text += (text.empty() ? "" : "  ") + name + '=' + value;
  return text;
}

}  // namespace

std::string duration_text(double seconds) {
  const long s = std::lround(seconds);
  return s < 100 ? std::to_string(s) + " s"
                 : std::to_string(s / 60) + " min " + std::to_string(s % 60) + " s";
}

void print(const report& r, railpass::internal::report::output& out) {
  const goal& g = r.found.measured.goals().front();
  const bool two = r.weights.size() == 2;
  constexpr std::size_t most_rows = 10;
  out.words() << r.found.runs << " launches in " << duration_text(r.found.spent_s) << ", "
              << r.found.measured.records().size() << " combinations. " << r.noise_sentence()
              << '\n';
  if (!r.found.complete)
    out.words()
        << "Time or launches ran out before the search had ended: --budget or --runs set the "
           "limit.\n";
  cells groups({two ? "mean of both" : g.name, "combinations", "the first of them"});
  for (std::size_t i = 0; i < std::min(r.groups.size(), most_rows); ++i)
    groups.add(
        {two ? fixed(r.shown(r.groups[i].score), 4) : shown_value(r.shown(r.groups[i].score), g),
         std::to_string(r.groups[i].members.size()),
         settings_text(r.where, r.groups[i].members.front())});
  out.words() << '\n' << out.printed(groups);
  if (r.groups.size() > most_rows)
    out.words() << "and " << r.groups.size() - most_rows << " groups that are worse\n";
  cells effects({"what matters", "share of the variation"});
  for (const effect& e : r.effects) {
    if (e.share < 0.01) break;
    if (!e.shown) continue;
    std::string names;
    for (const std::size_t i : e.parameters)
      names += (names.empty() ? "" : " with ") + r.where.parameters()[i].name;
    effects.add({names, percent(e.share, 0)});
  }
  out.words() << '\n'
              << (effects.empty() ? "No parameter is shown to matter.\n" : out.printed(effects));
  for (const auto& [message, combinations] : r.failures)
    out.words() << '\n'
                << combinations.size() << " failed: " << message << "\n  "
                << settings_text(r.where, combinations.front()) << '\n';
  if (two) out.words() << '\n' << r.front.size() << " combinations on the Pareto front\n";
  out.words() << '\n';
  if (const auto best = r.recommended())
    out.words() << "recommended  " << settings_text(r.where, *best) << '\n';
  if (const auto value = r.default_value(); value && !two)
    out.words() << "default      " << shown_value(*value, g) << '\n';
  out.words() << r.finding() << '\n';
}

}  // namespace railpass::internal::tune
