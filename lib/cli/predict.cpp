// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/report/prediction_tables.hpp"
#include "railpass/select/belief/prior.hpp"

#include <nlohmann/json.hpp>

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

int run(const options& o) {
  const collective op = parse_collective("--collective", o.collective_name);
  const std::vector<std::int64_t> sizes = parse_sizes("--bytes", o.bytes, largest_message_bytes);
  report::prediction_view view{.op = op,
                               .num_ranks = o.num_ranks,
                               .ranks_per_node = o.ranks_per_node,
                               .ranks_per_cache = o.ranks_per_cache,
                               .arms = {},
                               .simulate = o.simulate,
                               .simulate_hidden = o.json.wanted(),
                               .all = o.all || screen().csv,
                               .profile_path = o.profile};
  if (!o.arms.empty())
    for (const std::string& name : split_list("--arms", o.arms))
      view.arms.push_back(arm_of_option("--arms", op, name));
  profile known;
  if (o.profile.empty())
    known.machine = select::generic_machine();
  else
    known = files::read_profile(o.profile);

  if (o.json.text()) {
    screen().words() << report::heading_of(known, view);
    say_if_disturbed(known.core_share);
    screen().words() << report::limits_of(known, view);
  }
  auto predictions = nlohmann::ordered_json::array();
  for (const std::int64_t bytes : sizes) {
    const report::predicted_times times = report::predict_times(known, view, bytes);
    predictions.insert(predictions.end(), times.numbers.begin(), times.numbers.end());
    if (o.json.text()) report::print(times, screen());
  }
  const report::predicted_crossovers changes = report::predict_crossovers(known, view, sizes);
  if (o.json.text() && !changes.lines.empty()) screen().words() << screen().printed(changes.lines);
  o.json.write({{"collective", name_of(op)},
                {"num_ranks", o.num_ranks},
                {"ranks_per_node", o.ranks_per_node},
                {"ranks_per_cache", o.ranks_per_cache},
                {"profile", o.profile},
                {"predictions", predictions},
                {"crossovers", changes.numbers}});
  return succeeded;
}

}  // namespace

const verb predict_verb{
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
