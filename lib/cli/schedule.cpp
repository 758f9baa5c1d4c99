// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/report/schedule_timeline.hpp"
#include "lib/report/table.hpp"
#include "models/trace.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/predict/predict.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

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

struct rank_work {
  double sending_s = 0, receiving_s = 0, computing_s = 0;  // overlapping events counted once
  std::int64_t sent_bytes = 0, received_bytes = 0;
};

std::vector<rank_work> work_of(const simulation& run) {
  std::vector<rank_work> work(run.finish_s.size());
  std::vector<const timeline_event*> events;
  for (const timeline_event& e : run.events) events.push_back(&e);
  std::stable_sort(events.begin(), events.end(),
                   [](const auto* a, const auto* b) { return a->begin_s < b->begin_s; });
  struct covered {
    double until_s[3] = {0, 0, 0};
  };
  std::vector<covered> seen(work.size());
  for (const timeline_event* e : events) {
    rank_work& w = work[std::size_t(e->rank)];
    const int row = gives(e->kind) ? 0 : brings(e->kind) ? 1 : 2;
    double& until_s = seen[std::size_t(e->rank)].until_s[row];
    const double more_s = std::max(0.0, e->end_s - std::max(e->begin_s, until_s));
    until_s = std::max(until_s, e->end_s);
    (row == 0 ? w.sending_s : row == 1 ? w.receiving_s : w.computing_s) += more_s;
    if (row == 0) w.sent_bytes += e->bytes;
    if (row == 1) w.received_bytes += e->bytes;
  }
  return work;
}

// Who does one kind of work for the longest time.
struct bottleneck {
  std::size_t rank = 0;
  const char* doing = "sending";
  double busy_s = 0;
  std::int64_t bytes = 0;
};

bottleneck find_bottleneck(const std::vector<rank_work>& work) {
  bottleneck found;
  for (std::size_t r = 0; r < work.size(); ++r) {
    const auto consider = [&](const char* doing, double busy_s, std::int64_t bytes) {
      if (busy_s > found.busy_s) found = {r, doing, busy_s, bytes};
    };
    consider("sending", work[r].sending_s, work[r].sent_bytes);
    consider("receiving", work[r].receiving_s, work[r].received_bytes);
    consider("computing", work[r].computing_s, 0);
  }
  return found;
}

constexpr std::size_t work_columns = 6;

// What a rank does, as the table shows it but for its number.
std::array<double, work_columns> numbers_of(const rank_work& w, double finish_s) {
  return {finish_s,    double(w.sent_bytes), double(w.received_bytes),
          w.sending_s, w.receiving_s,        w.computing_s};
}

// Every rank; of many the least, the median and the most of each column, and whoever is named.
report::table table_of(const std::vector<rank_work>& work, const std::vector<double>& finish_s,
                       double time_s, const std::map<std::size_t, std::string>& named) {
  const bool in_full = screen().csv || work.size() <= std::size_t(most_ranks_in_full);
  report::table lines({in_full ? "rank" : "ranks", "done after", "sends", "receives", "sending",
                       "receiving", "computing"});
  const auto add = [&](const std::string& name, const std::array<double, work_columns>& n) {
    std::vector<std::string> row{name, format_seconds(n[0]), format_bytes(std::int64_t(n[1])),
                                 format_bytes(std::int64_t(n[2]))};
    for (std::size_t c = 3; c < work_columns; ++c)
      row.push_back(time_s > 0 ? percent(n[c] / time_s, 0) : std::string("-"));
    lines.add(std::move(row));
  };
  if (in_full) {
    for (std::size_t r = 0; r < work.size(); ++r)
      add(std::to_string(r), numbers_of(work[r], finish_s[r]));
    return lines;
  }
  std::array<std::vector<double>, work_columns> columns;
  for (std::size_t r = 0; r < work.size(); ++r) {
    const auto numbers = numbers_of(work[r], finish_s[r]);
    for (std::size_t c = 0; c < work_columns; ++c) columns[c].push_back(numbers[c]);
  }
  for (const auto& [name, q] : {std::pair("least", 0.0), {"median", 0.5}, {"most", 1.0}}) {
    std::array<double, work_columns> numbers{};
    for (std::size_t c = 0; c < work_columns; ++c) numbers[c] = quantile(columns[c], q);
    add(name, numbers);
  }
  for (const auto& [r, name] : named)
    add(std::to_string(r) + ", " + name, numbers_of(work[r], finish_s[r]));
  return lines;
}

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
  if (messages_of(chosen, o.num_ranks, bytes) > 4e6)
    throw usage_error("'" + o.what +
                      "': more messages than a picture can show; fewer ranks, fewer "
                      "bytes or longer segments");
  const machine_model machine =
      o.profile.empty() ? select::generic_machine() : files::read_profile(o.profile).machine;

  report::progress_bar bar("schedule", o.json.text());
  bar.show(0, "playing about " +
                  std::to_string(std::int64_t(messages_of(chosen, o.num_ranks, bytes))) +
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

  const std::vector<rank_work> work = work_of(played);
  const bottleneck slowest = find_bottleneck(work);
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
                     << screen().printed(table_of(work, played.finish_s, played.time_s, named));
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
    "schedule", "Play an arm on a modelled machine and draw the timeline",
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
