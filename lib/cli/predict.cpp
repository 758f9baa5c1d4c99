// SPDX-License-Identifier: BSL-1.0
#include "railpass/predict/predict.hpp"

#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/report/table.hpp"
#include "railpass/base/units.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options : placed_ranks {
  std::string profile;
  std::string collective_name;
  std::string bytes = "1KiB,64KiB,1MiB";
  std::string arms;
  bool simulate = false;
  bool all = false;
  json_output json;
};

bool can_be_simulated(const arm& a, const options& o, std::int64_t bytes) {
  return !a.base->is_native() && messages_of(a, o.num_ranks, bytes) < 2e7;
}

int run(const options& o) {
  const collective op = parse_collective("--collective", o.collective_name);
  const std::vector<std::int64_t> sizes = parse_sizes("--bytes", o.bytes, largest_message_bytes);
  std::vector<arm> wanted;
  if (!o.arms.empty())
    for (const std::string& name : split_list("--arms", o.arms))
      wanted.push_back(arm_of_option("--arms", op, name));
  profile known;
  if (o.profile.empty())
    known.machine = select::generic_machine();
  else
    known = files::read_profile(o.profile);

  auto predictions = nlohmann::ordered_json::array();
  simulator sim;
  const node_layout nodes =
      node_layout::blocks(o.simulate ? o.num_ranks : 1, o.ranks_per_node, o.ranks_per_cache);
  const auto show = [](const std::optional<double>& s) {
    return s ? format_seconds(*s) : std::string("unknown");
  };
  // Of a machine that nobody measured nobody knows how far predictions are off.
  const bool doubt_known = !o.profile.empty() && knows_links(known, o.num_ranks, o.ranks_per_node);
  if (o.json.text())
    screen().words()
        << name_of(op) << " on " << o.num_ranks << " ranks, " << o.ranks_per_node << " per node\n"
        << (o.profile.empty()
                ? "no profile: generic constants. Arms can be compared, but the times do not\n"
                  "hold for this machine (railpass sample and fit make a profile).\n"
            : doubt_known ? o.profile + '\n'
                          : o.profile +
                                ": links that these ranks need were never sampled; "
                                "the sampled\nlinks are used instead, with an unknown "
                                "error.\n")
        << '\n';
  if (o.json.text()) say_if_disturbed(known.core_share);
  if (const double known_ranks = most_measured_ranks(known, op);
      o.json.text() && doubt_known && o.num_ranks > std::lround(known_ranks))
    screen().words() << "Nothing was measured with more than " << std::lround(known_ranks)
                     << " ranks: predictions for more ranks are less certain.\n\n";
  for (const std::int64_t bytes : sizes) {
    const prediction_query q{.op = op,
                             .num_ranks = o.num_ranks,
                             .ranks_per_node = o.ranks_per_node,
                             .ranks_per_cache = o.ranks_per_cache,
                             .bytes = bytes,
                             .unit_bytes = unit_bytes_of(op, bytes)};
    std::vector<arm_prediction> arms;
    if (wanted.empty()) arms = predict_arms(known, q);
    for (const arm& a : wanted)
      if (detail::eligible_at(a, q)) arms.push_back(detail::predict_arm(known, a, q));
    std::vector<std::string> titles{"arm", "predicted"};
    if (doubt_known) titles.emplace_back("likely within");
    if (o.simulate) titles.emplace_back("simulated");
    report::table lines(titles);
    constexpr std::size_t shown_arms = 8;
    const bool all = o.all || screen().csv;
    std::size_t shown = 0;
    std::optional<double> last_s;  // arms that take the same are one of those that are shown
    for (const arm_prediction& p : arms) {
      const bool again = p.seconds && p.seconds == last_s;
      const bool show_it =
          all || !wanted.empty() || again || lines.rows() < shown_arms || p.what.base->is_native();
      std::optional<double> simulated_s;
      if (o.simulate && (show_it || o.json.wanted()) && can_be_simulated(p.what, o, bytes))
        simulated_s = simulate_arm(sim, known.machine, p.what, nodes,
                                   {.units = bytes / q.unit_bytes, .unit_bytes = q.unit_bytes})
                          .time_s;
      nlohmann::ordered_json entry{{"bytes", bytes}, {"arm", name_of(p.what)}};
      entry["predicted_s"] = p.seconds ? nlohmann::ordered_json(*p.seconds) : nullptr;
      entry["spread"] = doubt_known ? nlohmann::ordered_json(p.spread) : nullptr;
      if (o.simulate)
        entry["simulated_s"] = simulated_s ? nlohmann::ordered_json(*simulated_s) : nullptr;
      predictions.push_back(entry);
      if (!show_it) continue;
      ++shown;
      last_s = p.seconds;
      std::vector<std::string> cells{name_of(p.what), show(p.seconds)};
      if (doubt_known) cells.push_back(p.seconds ? "x/" + fixed(std::exp(p.spread), 2) : "-");
      if (o.simulate) cells.push_back(show(simulated_s));
      if (all)
        lines.add(cells);
      else
        lines.add_folded(cells);
    }
    if (!o.json.text()) continue;
    screen().words() << format_bytes(bytes) << '\n' << screen().printed(lines, format_bytes(bytes));
    if (shown < arms.size())
      screen().words() << arms.size() - shown << " slower arms are not shown (--all shows them)\n";
    screen().words() << '\n';
  }

  auto changes = nlohmann::ordered_json::array();
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  if (*most >= 1 && o.num_ranks > 1) {
    const auto list = crossovers(known,
                                 {.op = op,
                                  .num_ranks = o.num_ranks,
                                  .ranks_per_node = o.ranks_per_node,
                                  .ranks_per_cache = o.ranks_per_cache,
                                  .unit_bytes = unit_bytes_of(op, *most)},
                                 std::max<std::int64_t>(1, *least), *most);
    report::table lines({"from bytes", o.profile.empty() ? "the fastest arm by generic constants"
                                                         : "the fastest arm is predicted to be"});
    for (const crossover& c : list) {
      changes.push_back({{"from_bytes", c.from_bytes}, {"arm", name_of(c.best)}});
      lines.add({std::to_string(c.from_bytes), name_of(c.best)});
    }
    if (o.json.text() && !lines.empty()) screen().words() << screen().printed(lines);
  }
  o.json.write({{"collective", name_of(op)},
                {"num_ranks", o.num_ranks},
                {"ranks_per_node", o.ranks_per_node},
                {"ranks_per_cache", o.ranks_per_cache},
                {"profile", o.profile},
                {"predictions", predictions},
                {"crossovers", changes}});
  return succeeded;
}

}  // namespace

const verb predict_verb{
    "predict", "Predict the time of every arm and the sizes where the fastest one changes",
    "  railpass predict --profile profile.json --collective broadcast -p 64 \\\n"
    "    --ranks-per-node 4 --bytes 1KiB,64KiB,1MiB\n"
    "  railpass predict --profile profile.json --collective all_reduce -p 8 \\\n"
    "    --bytes 1KiB..4MiB --arms ring,recursive_doubling --simulate --json -\n"
    "a..b stands for all powers of two times a up to b.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "--profile", o->profile,
                 "profile written by railpass fit; default: generic constants")
          .value_name("FILE");
      add_option(app, "--collective", o->collective_name, "the collective")
          .value_name("NAME")
          .required();
      declare_ranks(app, *o, most_ranks);
      add_option(app, "--bytes", o->bytes, "message sizes").value_name("SIZES").show_default();
      add_option(app, "--arms", o->arms, "only these arms").value_name("NAMES");
      add_flag(app, "--simulate", o->simulate, "also play the schedules of all ranks");
      add_flag(app, "--all", o->all, "print all arms, not only the fastest");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
