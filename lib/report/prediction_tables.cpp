// SPDX-License-Identifier: BSL-1.0
#include "lib/report/prediction_tables.hpp"

#include "lib/report/schedule_work.hpp"
#include "railpass/base/units.hpp"
#include "railpass/predict/predict.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace railpass::internal::report {

namespace {

using nlohmann::ordered_json;

// Nobody knows how far predictions for a machine without measurements are off.
bool is_doubt_known(const profile& known, const prediction_view& view) {
  return !view.profile_path.empty() && knows_links(known, view.num_ranks, view.ranks_per_node);
}

bool can_be_simulated(const arm& a, const prediction_view& view, std::int64_t bytes) {
  return !a.base->is_native() && messages_of(a, view.num_ranks, bytes) < 2e7;
}

std::string show(const std::optional<double>& seconds) {
  return seconds ? format_seconds(*seconds) : std::string("unknown");
}
ordered_json number(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

std::vector<arm_prediction> predictions(const profile& known, const prediction_view& view,
                                        const prediction_query& q) {
  if (view.arms.empty()) return predict_arms(known, q);
  std::vector<arm_prediction> result;
  for (const arm& a : view.arms)
    if (detail::eligible_at(a, q)) result.push_back(detail::predict_arm(known, a, q));
  return result;
}

}  // namespace

std::string heading_of(const profile& known, const prediction_view& view) {
  return std::string(name_of(view.op)) + " on " + std::to_string(view.num_ranks) + " ranks, " +
         std::to_string(view.ranks_per_node) + " per node\n" +
         (view.profile_path.empty()
              ? "no profile: generic constants. Arms can be compared, but the times do not\n"
                "hold for this machine (railpass sample and fit make a profile).\n"
          : is_doubt_known(known, view) ? view.profile_path + '\n'
                                        : view.profile_path +
                                              ": links that these ranks need were never sampled; "
                                              "the sampled\nlinks are used instead, with an "
                                              "unknown error.\n") +
         '\n';
}

std::string limits_of(const profile& known, const prediction_view& view) {
  const double most_known = most_measured_ranks(known, view.op);
  if (!is_doubt_known(known, view) || view.num_ranks <= std::lround(most_known)) return "";
  return "Nothing was measured with more than " + std::to_string(std::lround(most_known)) +
         " ranks: predictions for more ranks are less certain.\n\n";
}

predicted_times predict_times(const profile& known, const prediction_view& view,
                              std::int64_t bytes) {
  const prediction_query q{.op = view.op,
                           .num_ranks = view.num_ranks,
                           .ranks_per_node = view.ranks_per_node,
                           .ranks_per_cache = view.ranks_per_cache,
                           .bytes = bytes,
                           .unit_bytes = unit_bytes_of(view.op, bytes)};
  const bool doubt_known = is_doubt_known(known, view);
  std::vector<std::string> titles{"arm", "predicted"};
  if (doubt_known) titles.emplace_back("likely within");
  if (view.simulate) titles.emplace_back("simulated");
  predicted_times result{.bytes = bytes, .lines = table(titles), .numbers = ordered_json::array()};
  constexpr std::size_t shown_arms = 8;
  simulator sim;
  const node_layout nodes = node_layout::blocks(view.simulate ? view.num_ranks : 1,
                                                view.ranks_per_node, view.ranks_per_cache);
  std::optional<double> last_s;  // arms that take the same are one of those that are shown
  for (const arm_prediction& p : predictions(known, view, q)) {
    const bool again = p.seconds && p.seconds == last_s;
    const bool is_shown = view.all || !view.arms.empty() || again ||
                          result.lines.rows() < shown_arms || p.what.base->is_native();
    std::optional<double> simulated_s;
    if (view.simulate && (is_shown || view.simulate_hidden) &&
        can_be_simulated(p.what, view, bytes))
      simulated_s = simulate_arm(sim, known.machine, p.what, nodes,
                                 {.units = bytes / q.unit_bytes, .unit_bytes = q.unit_bytes})
                        .time_s;
    ordered_json entry{{"bytes", bytes}, {"arm", name_of(p.what)}};
    entry["predicted_s"] = number(p.seconds);
    entry["spread"] = doubt_known ? ordered_json(p.spread) : ordered_json(nullptr);
    if (view.simulate) entry["simulated_s"] = number(simulated_s);
    result.numbers.push_back(std::move(entry));
    if (!is_shown) {
      ++result.num_hidden;
      continue;
    }
    last_s = p.seconds;
    std::vector<std::string> cells{name_of(p.what), show(p.seconds)};
    if (doubt_known) cells.push_back(p.seconds ? "x/" + fixed(std::exp(p.spread), 2) : "-");
    if (view.simulate) cells.push_back(show(simulated_s));
    if (view.all)
      result.lines.add(cells);
    else
      result.lines.add_folded(cells);
  }
  return result;
}

void print(const predicted_times& times, output& out) {
  const std::string size = format_bytes(times.bytes);
  out.words() << size << '\n' << out.printed(times.lines, size);
  if (times.num_hidden > 0)
    out.words() << times.num_hidden << " slower arms are not shown (--all shows them)\n";
  out.words() << '\n';
}

predicted_crossovers predict_crossovers(const profile& known, const prediction_view& view,
                                        const std::vector<std::int64_t>& sizes) {
  predicted_crossovers result{
      .lines =
          table({"from bytes", view.profile_path.empty() ? "the fastest arm by generic constants"
                                                         : "the fastest arm is predicted to be"}),
      .numbers = ordered_json::array()};
  const auto [least, most] = std::ranges::minmax(sizes);
  if (most < 1 || view.num_ranks <= 1) return result;
  for (const crossover& c : crossovers(known,
                                       {.op = view.op,
                                       .num_ranks = view.num_ranks,
                                       .ranks_per_node = view.ranks_per_node,
                                       .ranks_per_cache = view.ranks_per_cache,
                                       .unit_bytes = unit_bytes_of(view.op, most)},
                                       std::max<std::int64_t>(1, least), most)) {
    result.numbers.push_back({{"from_bytes", c.from_bytes}, {"arm", name_of(c.best)}});
    result.lines.add({std::to_string(c.from_bytes), name_of(c.best)});
  }
  return result;
}

}  // namespace railpass::internal::report
