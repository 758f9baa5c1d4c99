// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/results.hpp"

#include "lib/files/files.hpp"
#include "lib/files/json_reader.hpp"
#include "lib/tune/parameter_file.hpp"
#include "lib/tune/surrogate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

namespace railpass::internal::tune {

namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view format = "railpass tune";
constexpr int version = 1;

json settings_json(const space& where, const combination& c) {
  json j = json::object();
  for (const auto& [name, value] : where.settings(c)) j[name] = value;
  return j;
}

std::string percentage(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * fraction);
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// "takes 0.68 of the time of the default".
std::string ratio_words(double ratio, const std::vector<goal>& goals) {
  if (goals.size() > 1)
    return "costs " + number(ratio) + " of the default in the mean of both metrics";
  const goal& g = goals.front();
  if (g.higher_is_better)
    return "has " + number(ratio) + " times the " + g.name + " of the default";
  return "takes " + number(ratio) + " of the " + (g.name == "latency" ? "time" : g.name) +
         " of the default";
}

std::vector<double> last_weights(std::size_t goals) { return weightings(goals).back(); }

bool one_failed(const std::vector<outcome>& launches) {
  return std::ranges::any_of(launches, [](const outcome& o) { return !o.ok(); });
}

}  // namespace

std::vector<tie_group> tie_groups(const table& measured, std::span<const double> weights,
                                  const precision& wanted) {
  const standings ranks(measured, weights, wanted);
  std::vector<tie_group> groups;
  const standing* first = nullptr;
  for (const standing& s : ranks.all()) {
    if (!first || !ranks.tied(*first, s)) {
      first = &s;
      groups.push_back({s.score, {}});
    }
    groups.back().members.push_back(s.of->what);
  }
  return groups;
}

std::vector<effect> effects_of(const space& where, const table& measured,
                               std::span<const double> weights, double noise, double confidence) {
  constexpr std::size_t most_seen = 500, most_asked = 4000;
  std::vector<observation> seen;
  const standings ranks(measured, weights, {});
  // Takes very many combinations at even spacing from the best to the worst.
  const std::size_t step = ranks.all().size() / most_seen + 1;
  for (std::size_t i = 0; i < ranks.all().size(); i += step) {
    const standing& s = ranks.all()[i];
    seen.push_back({s.of->what, s.score, double(s.of->runs)});
  }
  if (seen.size() < 3) return {};
  surrogate model(where);
  for (int round = 0; round < 2; ++round) model.fit(seen, noise, true);

  std::vector<combination> asked;
  if (where.count(condition_rule::first_value, most_asked + 1) <= most_asked) {
    auto c = where.first();
    for (bool more = c.has_value(); more; more = where.next(*c)) asked.push_back(*c);
  } else {
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < most_asked; ++i) asked.push_back(where.draw(random));
  }
  std::vector<double> scores;
  double mean = 0, variance = 0;
  for (const auto& p : model.predict(asked)) {
    scores.push_back(p.mean);
    mean += p.mean / double(asked.size());
  }
  for (const double s : scores) variance += (s - mean) * (s - mean) / double(asked.size());
  if (variance < 1e-12) return {};

  // Means of cells: of a parameter's levels, or of pairs of levels of two.
  struct cell {
    double sum = 0;
    std::size_t count = 0;
  };
  const auto& parameters = where.parameters();
  const auto launches_in = [&](auto is_in) {
    double launches = 0;
    for (const observation& o : seen)
      if (is_in(o.what)) launches += o.runs;
    return launches;
  };
  // Infinite where nothing was launched.
  const auto error_of = [&](double launches) {
    return launches > 0 ? noise / std::sqrt(launches) : INFINITY;
  };
  // Corrected for `comparisons` simultaneous comparisons.
  const auto beyond_noise = [&](double difference, double error, std::size_t comparisons) {
    return std::abs(difference) >
           error * normal_quantile((1 + std::pow(confidence, 1 / double(comparisons))) / 2);
  };
  std::vector<effect> effects;
  std::map<std::size_t, std::vector<double>> alone;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].levels() < 2) continue;
    std::vector<cell> cells(parameters[i].levels());
    for (std::size_t n = 0; n < asked.size(); ++n) {
      cells[asked[n][i]].sum += scores[n];
      ++cells[asked[n][i]].count;
    }
    effect e{.parameters = {i}, .share = 0};
    double best = 1e300;
    std::size_t best_level = 0;
    for (const cell& c : cells) {
      const double level = c.count ? c.sum / double(c.count) : mean;
      e.share +=
          double(c.count) / double(asked.size()) * (level - mean) * (level - mean) / variance;
      e.levels.push_back(level);
      if (c.count && level < best) {
        best = level;
        best_level = e.levels.size() - 1;
      }
    }
    alone[i] = e.levels;
    const auto error_at = [&](std::size_t level) {
      return error_of(launches_in([&](const combination& c) { return c[i] == level; }));
    };
    for (std::size_t level = 0; level < e.levels.size(); ++level) {
      e.levels[level] -= best;
      e.errors.push_back(level == best_level ? 0
                                             : std::hypot(error_at(level), error_at(best_level)));
      e.shown = e.shown || beyond_noise(e.levels[level], e.errors[level], e.levels.size() - 1);
    }
    effects.push_back(std::move(e));
  }
  for (const auto& [i, means_i] : alone)
    for (const auto& [j, means_j] : alone) {
      if (j <= i) continue;
      std::map<std::pair<std::size_t, std::size_t>, cell> cells;
      for (std::size_t n = 0; n < asked.size(); ++n) {
        cell& c = cells[{asked[n][i], asked[n][j]}];
        c.sum += scores[n];
        ++c.count;
      }
      effect e{.parameters = {i, j}, .share = 0};
      for (const auto& [levels, c] : cells) {
        const double beyond =
            c.sum / double(c.count) - means_i[levels.first] - means_j[levels.second] + mean;
        e.share += double(c.count) / double(asked.size()) * beyond * beyond / variance;
        const double launches = launches_in(
            [&](const combination& of) { return of[i] == levels.first && of[j] == levels.second; });
        e.shown = e.shown || beyond_noise(beyond, error_of(launches), cells.size());
      }
      effects.push_back(std::move(e));
    }
  std::stable_sort(effects.begin(), effects.end(),
                   [](const effect& a, const effect& b) { return a.share > b.share; });
  return effects;
}

std::vector<combination> pareto_front(const table& measured, const precision& wanted) {
  const double one[] = {1, 0}, other[] = {0, 1};
  const standings first(measured, one, wanted), second(measured, other, wanted);
  std::map<combination, const standing*> of_second;
  for (const standing& s : second.all()) of_second[s.of->what] = &s;
  std::vector<combination> front;
  for (const standing& a : first.all()) {
    const standing& a2 = *of_second[a.of->what];
    const bool dominated =
        std::any_of(first.all().begin(), first.all().end(), [&](const standing& b) {
          const standing& b2 = *of_second[b.of->what];
          const bool better = b.score < a.score && !first.tied(a, b);
          const bool better2 = b2.score < a2.score && !second.tied(a2, b2);
          return (better && (b2.score <= a2.score || second.tied(a2, b2))) ||
                 (better2 && (b.score <= a.score || first.tied(a, b)));
        });
    if (!dominated) front.push_back(a.of->what);
  }
  return front;
}

report::report(const space& parameters, const tuning_plan& asked, std::string command_line,
               std::string target_name, tuning result)
    : where(parameters),
      plan(asked),
      command(std::move(command_line)),
      target(std::move(target_name)),
      found(std::move(result)),
      weights(last_weights(found.measured.goals().size())),
      groups(tie_groups(found.measured, weights, plan.wanted)),
      effects(effects_of(where, found.measured, weights, found.noise, plan.wanted.confidence)) {
  if (weights.size() == 2) front = pareto_front(found.measured, plan.wanted);
  std::map<std::string, std::vector<combination>> by_message;
  for (const auto& [what, r] : found.measured.records())
    if (r.failed()) by_message[r.failure].push_back(what);
  failures.assign(by_message.begin(), by_message.end());
  std::stable_sort(failures.begin(), failures.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
}

double report::shown(double score) const {
  // Through the logarithm and back, 10 would be 10.000000000000002.
  char text[32];
  std::snprintf(text, sizeof text, "%.13g", found.measured.value_of(score, 0));
  return std::strtod(text, nullptr);
}

std::optional<double> report::default_value() const {
  std::vector<double> scores;
  for (const outcome& o : found.defaults) {
    if (!o.ok()) return std::nullopt;
    std::vector<double> per_goal;
    for (std::size_t g = 0; g < o.values.size(); ++g)
      per_goal.push_back(found.measured.score_of(o.values[g], g));
    scores.push_back(weighted(per_goal, weights));
  }
  if (scores.empty()) return std::nullopt;
  return shown(typical_score(scores));
}

std::optional<combination> report::recommended() const {
  if (found.cost_ratio) return found.cost_ratio->high < 1 ? found.recommended : std::nullopt;
  return one_failed(found.defaults) && !one_failed(found.checks) ? found.recommended : std::nullopt;
}

std::optional<likely_ratio> report::ratio_to_default() const {
  const auto& cost = found.cost_ratio;
  const std::vector<goal>& goals = found.measured.goals();
  if (!cost || goals.size() > 1 || !goals.front().higher_is_better) return cost;
  return likely_ratio{1 / cost->value, 1 / cost->high, 1 / cost->low};
}

std::string report::finding() const {
  if (!found.recommended) return "No launch gave a value.";
  const auto ratio = ratio_to_default();
  if (!ratio && one_failed(found.checks))
    return "A launch of the best combination failed in the comparison with the default.";
  if (!ratio && one_failed(found.defaults)) return "The default gave no value to compare with.";
  if (!ratio) return "The best combination was not compared with the default.";
  const std::string takes = ratio_words(ratio->value, found.measured.goals());
  if (!noise_known())
    return "The best combination " + takes +
           " in one launch of each; the variation between launches is unknown.";
  const std::string likely = takes + " (" + percentage(plan.wanted.confidence) + " interval " +
                             number(ratio->low) + " .. " + number(ratio->high) + ")";
  if (recommended()) return "The recommended combination " + likely + ".";
  return "No combination is shown to be better than the default: the best combination " + likely +
         ".";
}

bool report::noise_known() const {
  return std::ranges::any_of(found.measured.records(),
                             [](const auto& r) { return r.second.scores.size() > 1; });
}

std::string report::noise_sentence() const {
  if (!noise_known())
    return "The variation between launches is unknown, as no combination was repeated.";
  return found.noise > 0 ? "The value of one launch varies by " + percentage(found.noise) + "."
                         : "Launches with the same values did not differ.";
}

std::string to_json(const report& r) {
  json j{{"runs", r.found.runs}};
  if (const auto value = r.default_value())
    j["default"] = *value;
  else
    j["default"] = nullptr;
  json groups = json::array();
  for (const tie_group& g : r.groups) {
    json combinations = json::array();
    for (const combination& c : g.members) combinations.push_back(settings_json(r.where, c));
    groups.push_back({{"value", r.shown(g.score)},
                      {"count", g.members.size()},
                      {"combinations", std::move(combinations)}});
  }
  j["groups"] = std::move(groups);
  j["recommended"] = nullptr;
  if (const auto best = r.recommended()) j["recommended"] = settings_json(r.where, *best);
  j["finding"] = r.finding();
  if (const auto ratio = r.ratio_to_default())
    j["ratio_to_default"] = {{"value", ratio->value},
                             {"low", ratio->low},
                             {"high", ratio->high},
                             {"confidence", r.plan.wanted.confidence}};
  j["format"] = format;
  j["version"] = version;
  j["command"] = r.command;
  j["target"] = r.target;
  j["search"] = r.plan.search;
  j["complete"] = r.found.complete;
  j["spent_s"] = r.found.spent_s;
  j["noise"] = r.found.noise;
  j["repetitions"] = r.plan.wanted.repetitions;
  j["goals"] = json::array();
  for (const goal& g : r.found.measured.goals())
    j["goals"].push_back(
        {{"name", g.name}, {"unit", g.unit}, {"better", g.higher_is_better ? "higher" : "lower"}});
  json effects = json::array();
  for (const effect& e : r.effects) {
    json names = json::array();
    for (const std::size_t i : e.parameters) names.push_back(r.where.parameters()[i].name);
    json entry{{"parameters", std::move(names)}, {"share", e.share}, {"shown", e.shown}};
    if (!e.levels.empty()) {
      json levels = json::object();
      for (std::size_t l = 0; l < e.levels.size(); ++l)
        levels[r.where.parameters()[e.parameters[0]].values[l]] = std::expm1(e.levels[l]);
      entry["worse_than_best_value"] = std::move(levels);
    }
    effects.push_back(std::move(entry));
  }
  j["effects"] = std::move(effects);
  json failures = json::array();
  for (const auto& [message, combinations] : r.failures) {
    json list = json::array();
    for (const combination& c : combinations) list.push_back(settings_json(r.where, c));
    failures.push_back(
        {{"message", message}, {"count", combinations.size()}, {"combinations", std::move(list)}});
  }
  j["failures"] = std::move(failures);
  if (!r.front.empty()) {
    json front = json::array();
    for (const combination& c : r.front) {
      std::vector<double> values;
      const record& measured = *r.found.measured.find(c);
      for (std::size_t g = 0; g < 2; ++g) {
        std::vector<double> scores;
        for (const auto& s : measured.scores) scores.push_back(s[g]);
        values.push_back(r.found.measured.value_of(typical_score(scores), g));
      }
      front.push_back({{"values", values}, {"combination", settings_json(r.where, c)}});
    }
    j["front"] = std::move(front);
  }
  // The best group with virtual parameters, for --union and --intersection.
  json parameters = json::parse(to_parameter_json(r.where.parameters()));
  json winners = json::array();
  if (!r.groups.empty())
    for (const combination& c : r.groups.front().members) winners.push_back(c);
  j["parameters"] = std::move(parameters);
  j["winners"] = std::move(winners);
  return j.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

std::vector<parameter> read_winners(const std::string& path) {
  const std::string text = files::read_text(path);
  const files::json_document document(text, path);
  const files::json_reader top = document.expect(format, version);
  const space where = parse_parameters(top.field("parameters").dump(), path + ": parameters");
  std::vector<parameter> parameters = where.parameters();
  std::vector<std::vector<bool>> won;
  for (const parameter& p : parameters) won.emplace_back(p.levels(), false);
  const auto list = top.list("winners");
  for (const files::json_reader& winner : list) {
    const auto levels = winner.integers(0, most_levels);
    if (levels.size() != parameters.size()) winner.fail("expected a level for each parameter");
    for (std::size_t i = 0; i < levels.size(); ++i) {
      if (std::size_t(levels[i]) >= won[i].size()) winner.fail("there is no such level");
      won[i][std::size_t(levels[i])] = true;
    }
  }
  if (list.empty()) throw error(path + ": the result has no best group");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameter& p = parameters[i];
    if (p.aggregate) continue;
    std::vector<std::string> values;
    for (std::size_t l = 0; l < p.values.size(); ++l)
      if (won[i][l]) values.push_back(p.values[l]);
    p.values = std::move(values);
  }
  return parameters;
}

namespace {

template <typename Combine>
std::vector<parameter> combine(const std::vector<std::string>& paths, Combine values_of) {
  std::vector<parameter> result = read_winners(paths.at(0));
  for (std::size_t n = 1; n < paths.size(); ++n) {
    const std::vector<parameter> other = read_winners(paths[n]);
    const bool alike =
        std::equal(result.begin(), result.end(), other.begin(), other.end(),
                   [](const parameter& a, const parameter& b) { return a.name == b.name; });
    if (!alike) throw error(paths[n] + ": expected the same parameters as in " + paths[0]);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result[i].aggregate) continue;
      result[i].values = values_of(result[i].values, other[i].values);
      if (result[i].values.empty())
        throw error("the best groups of these results have no value of '" + result[i].name +
                    "' in common");
    }
  }
  return result;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

std::vector<parameter> union_of(const std::vector<std::string>& paths) {
  return combine(paths, [](std::vector<std::string> a, const std::vector<std::string>& b) {
    for (const std::string& v : b)
      if (!contains(a, v)) a.push_back(v);
    return a;
  });
}

std::vector<parameter> intersection_of(const std::vector<std::string>& paths) {
  return combine(paths, [](std::vector<std::string> a, const std::vector<std::string>& b) {
    std::erase_if(a, [&](const std::string& v) { return !contains(b, v); });
    return a;
  });
}

}  // namespace railpass::internal::tune
