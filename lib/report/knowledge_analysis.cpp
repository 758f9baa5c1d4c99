// SPDX-License-Identifier: BSL-1.0
#include "lib/report/knowledge_analysis.hpp"

#include "lib/report/style.hpp"
#include "railpass/base/units.hpp"
#include "railpass/knowledge/accuracy.hpp"
#include "railpass/knowledge/groups.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace railpass::internal::report {

namespace {

using knowledge::analysis, knowledge::metric;

std::string distance_text(double distance, metric by) {
  return by == metric::lengths ? format_bytes(std::llround(distance))
                               : number(distance) + " octaves";
}

table problems_of(const knowledge::group& g, const analysis& found, metric by, double p_max) {
  table lines(
      {"bytes", "best arm", "time", "within " + percent(p_max, 0) + " of it", "similar up to"});
  constexpr std::size_t most_named = 4;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const int best = found.winner(i);
    std::string as_good;
    std::size_t others = 0;
    for (const int arm : found.good_arms(i))
      if (arm != best && ++others <= most_named)
        as_good += (others > 1 ? ", " : "") + g.arms[std::size_t(arm)];
    if (others > most_named) as_good += " and " + std::to_string(others - most_named) + " more";
    const knowledge::instance& at = found.problem(i);
    lines.add({format_bytes(std::llround(at.coordinates.front())), g.arms[std::size_t(best)],
               format_seconds(at.arms[std::size_t(best)]->seconds), others > 0 ? as_good : "-",
               distance_text(found.reach(i), by)});
  }
  return lines;
}

table predictors_of(const knowledge::group& g, const knowledge::analysis_options& o) {
  // Each is predicted from all others, each of which is compared with all others.
  constexpr std::size_t most_judged = 64;
  const std::size_t step = (g.problems.size() + most_judged - 1) / most_judged;
  std::vector<knowledge::instance> problems;
  for (std::size_t i = 0; i < g.problems.size(); i += step) problems.push_back(g.problems[i]);
  table lines({"predictor, " + std::to_string(problems.size()) + " sizes", "right", "no prediction",
               "mean loss"});
  if (problems.size() < 2) return lines;
  const auto add = [&](const std::string& name, std::span<const std::optional<int>> named) {
    const knowledge::accuracy judged(named, problems);
    lines.add({name, percent(judged.right(o.p_max)),
               percent(1 - double(judged.predicted()) / double(judged.problems())),
               percent(judged.mean_loss())});
  };
  const std::array<std::pair<const char*, knowledge::predictor>, 3> predictors{
      {{"closest", &analysis::from_closest},
       {"similar", &analysis::from_similar},
       {"curves", &analysis::from_curves}}};
  for (const auto& [name, how] : predictors) add(name, knowledge::leave_one_out(problems, how, o));
  if (const auto single = knowledge::best_single_arm(problems))
    add("always " + g.arms[std::size_t(*single)],
        std::vector<std::optional<int>>(problems.size(), single));
  return lines;
}

}  // namespace

std::string shape_of(const knowledge::problem& p) {
  return p.collective + (p.operation == "none" ? "" : " " + p.operation) + ", " +
         std::to_string(p.num_ranks) + " ranks, " + std::to_string(p.ranks_per_node) +
         " per node, " + p.kind + (p.rails.empty() ? "" : ", rails " + p.rails);
}

std::vector<analysed_group> analyse_knowledge(std::span<const knowledge::experience> known,
                                              const knowledge::analysis_options& o) {
  std::vector<analysed_group> result;
  for (const knowledge::group& g : knowledge::groups_of(known)) {
    const analysis found(g.problems, o);
    result.push_back({.title = shape_of(g.of),
                      .problems = problems_of(g, found, o.by, o.p_max),
                      .predictors = predictors_of(g, o)});
  }
  return result;
}

}  // namespace railpass::internal::report
