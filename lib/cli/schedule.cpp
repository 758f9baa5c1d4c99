// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/report/schedule_timeline.hpp"
#include "lib/report/schedule_work.hpp"
#include "models/trace.hpp"
#include "railpass/base/units.hpp"
#include "railpass/predict/predict.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options : placed_ranks {
  std::string what;
  int root = 0;
  std::string bytes = "1MiB";
  std::string profile;
  std::string trace;
  std::string svg;
  json_output json;
};

int run(const options& o) {
  const std::size_t colon = o.what.find(':');
  if (colon == std::string::npos)
    throw usage_error("'" + o.what + "': expected collective:arm, such as broadcast:binomial");
  const collective op = parse_collective("collective", o.what.substr(0, colon));
  const arm chosen = [&] {
    try {
      return parse_arm(op, o.what.substr(colon + 1));
    } catch (const error& wrong) {
      throw usage_error(wrong.what());
    }
  }();
  check_root(o.root, o.num_ranks);
  const std::int64_t bytes = parse_size("--bytes", o.bytes, largest_message_bytes);
  const std::int64_t unit_bytes = unit_bytes_of(op, bytes);
  if (chosen.base->is_native())
    throw usage_error("'" + o.what + "': the MPI library's own collective has no schedule to show");
  if (!detail::eligible_at(chosen, {.op = op,
                                    .num_ranks = o.num_ranks,
                                    .ranks_per_node = o.ranks_per_node,
                                    .ranks_per_cache = o.ranks_per_cache,
                                    .bytes = bytes,
                                    .unit_bytes = unit_bytes}))
    throw usage_error("'" + o.what + "' cannot run with " + std::to_string(o.num_ranks) +
                      " ranks, " + std::to_string(o.ranks_per_node) + " per node, and " +
                      format_bytes(bytes) + " (railpass algorithms says what it needs)");
  if (report::messages_of(chosen, o.num_ranks, bytes) > 4e6)
    throw usage_error("'" + o.what +
                      "': more messages than a picture can show; fewer ranks, fewer "
                      "bytes or longer segments");
  const machine_model machine =
      o.profile.empty() ? select::generic_machine() : files::read_profile(o.profile).machine;

  report::progress_bar bar("schedule", o.json.text());
  bar.show(0, "playing about " +
                  std::to_string(std::int64_t(report::messages_of(chosen, o.num_ranks, bytes))) +
                  " messages");
  simulator sim;
  const simulation& played = simulate_arm(
      sim, machine, chosen, node_layout::blocks(o.num_ranks, o.ranks_per_node, o.ranks_per_cache),
      {.units = bytes / unit_bytes, .unit_bytes = unit_bytes}, o.root, true);
  const timeline_caption caption{.collective = std::string(name_of(op)),
                                 .arm = name_of(chosen),
                                 .bytes = bytes,
                                 .root = traits_of(op).rooted ? o.root : -1};
  bar.show(0.5, "writing");
  if (!o.trace.empty()) files::write_text(o.trace, chrome_trace(played, caption));
  if (!o.svg.empty()) files::write_text(o.svg, report::draw_schedule_timeline(played, caption));

  const std::vector<report::rank_work> work = report::work_of(played);
  const report::bottleneck slowest = report::find_bottleneck(work);
  auto ranks = nlohmann::ordered_json::array();
  const auto share = [&](double seconds) {
    return played.time_s > 0 ? percent(seconds / played.time_s, 0) : std::string("-");
  };
  for (std::size_t r = 0; r < work.size(); ++r) {
    ranks.push_back({{"rank", r},
                     {"finish_s", played.finish_s[r]},
                     {"sent_bytes", work[r].sent_bytes},
                     {"received_bytes", work[r].received_bytes},
                     {"sending_s", work[r].sending_s},
                     {"receiving_s", work[r].receiving_s},
                     {"computing_s", work[r].computing_s}});
  }
  bar.hide();
  std::map<std::size_t, std::string> named;
  if (traits_of(op).rooted) named[std::size_t(o.root)] = "root";
  named.try_emplace(slowest.rank, "the bottleneck");
  named.try_emplace(
      std::size_t(std::ranges::max_element(played.finish_s) - played.finish_s.begin()),
      "done last");
  if (o.json.text()) {
    screen().words() << name_of(op) << ":" << name_of(chosen) << " of " << format_bytes(bytes)
                     << " on " << o.num_ranks << " ranks, " << o.ranks_per_node
                     << " per node: " << format_seconds(played.time_s) << ", " << played.messages
                     << " messages\n"
                     << (o.profile.empty() ? "no profile: generic constants" : o.profile) << "\n\n"
                     << screen().printed(report::work_table(work, played, named, screen().csv));
    if (slowest.busy_s > 0)
      screen().words() << "\nbottleneck: rank " << slowest.rank << " is " << slowest.doing
                       << " for " << format_seconds(slowest.busy_s) << ", " << share(slowest.busy_s)
                       << " of the time"
                       << (slowest.bytes > 0 ? ", " + format_bytes(slowest.bytes) : "") << '\n';
    if (!o.trace.empty())
      screen().words() << "trace: " << o.trace
                       << " (open it in ui.perfetto.dev or chrome://tracing)\n";
    if (!o.svg.empty())
      screen().words() << "picture: " << o.svg
                       << (o.num_ranks > report::most_ranks_drawn ? ", a selection of the ranks"
                                                                  : "")
                       << '\n';
  }
  o.json.write({{"collective", name_of(op)},
                {"arm", name_of(chosen)},
                {"num_ranks", o.num_ranks},
                {"ranks_per_node", o.ranks_per_node},
                {"ranks_per_cache", o.ranks_per_cache},
                {"root", o.root},
                {"bytes", bytes},
                {"profile", o.profile},
                {"time_s", played.time_s},
                {"messages", played.messages},
                {"bottleneck",
                 {{"rank", slowest.rank}, {"doing", slowest.doing}, {"busy_s", slowest.busy_s}}},
                {"ranks", ranks}});
  return succeeded;
}

}  // namespace

const verb schedule_verb{
    "  railpass schedule broadcast:binomial -p 16 --bytes 1MiB --svg timeline.svg\n"
    "  railpass schedule all_reduce:ring -p 8 --profile cluster.json --trace t.json\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "arm", o->what, "collective:arm, such as broadcast:chain+segment_bytes=8KiB")
          .value_name("ARM")
          .required();
      declare_ranks(app, *o, 4096);
      add_option(app, "--root", o->root, "root of the collective")
          .value_name("RANK")
          .show_default();
      add_option(app, "--bytes", o->bytes, "message size").value_name("SIZE").show_default();
      add_option(app, "--profile", o->profile,
                 "profile written by railpass fit; default: generic constants")
          .value_name("FILE");
      add_option(app, "--trace", o->trace, "write a trace for Perfetto").value_name("FILE");
      add_option(app, "--svg", o->svg, "write a picture").value_name("FILE");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
