// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/report/statistics_tables.hpp"
#include "lib/report/table.hpp"
#include "lib/runtime/ledger_board.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string file;
  report::statistics_view view;
  bool hosts = false, running = false;
  json_output json;
};

// ---- ledgers of programs that run

double seconds_since(const posted_ledger& l) {
  return std::max(0.0, steady_clock_s() - l.posted_at_s);
}
// Of a timed call; 0 before the first one.
double per_call(const posted_ledger& l, double seconds) {
  return l.sums.calls > 0 ? seconds / double(l.sums.calls) : 0;
}
std::optional<double> starved_share(const posted_ledger& l) {
  if (!(l.sums.since_before_s > 0)) return std::nullopt;
  return l.sums.starved_s / l.sums.since_before_s;
}

report::table table_of(const found_ledgers& program) {
  report::table lines({"rank", "process", "timed calls", "between calls", "from call to call",
                       "without core", "posted before"});
  for (const posted_ledger& l : program.ledgers) {
    const std::optional<double> starved = starved_share(l);
    lines.add({std::to_string(l.rank), std::to_string(l.pid), std::to_string(l.sums.calls),
               format_seconds(per_call(l, l.sums.outside_s)),
               format_seconds(per_call(l, l.sums.passed_s)), starved ? percent(*starved) : "-",
               format_seconds(seconds_since(l))});
  }
  return lines;
}

void print(const found_ledger_boards& found) {
  std::ostream& words = screen().words();
  if (found.boards.empty())
    words
        << screen().wrapped(
               "No program on this host has a board. A program on several hosts has boards if "
               "all its ranks have RAILPASS_STATS or RAILPASS_SUMMARY, once a communicator of all "
               "ranks is tuned.",
               0)
        << '\n';
  for (const found_ledgers& b : found.boards)
    if (!b.ledgers.empty())
      words << "Running: " << printable(b.ledgers.front().program) << ", " << b.ledgers.size()
            << " of " << b.num_ranks << " ranks on this host\n"
            << screen().printed(table_of(b)) << '\n';
  for (const std::string& why : found.skipped) words << "Skipped " << printable(why) << '\n';
}

nlohmann::ordered_json as_json(const found_ledgers& program) {
  using json = nlohmann::ordered_json;
  json ledgers = json::array();
  for (const posted_ledger& l : program.ledgers) {
    const std::optional<double> starved = starved_share(l);
    ledgers.push_back({{"rank", l.rank},
                       {"pid", l.pid},
                       {"program", l.program},
                       {"calls", l.sums.calls},
                       {"outside_s", per_call(l, l.sums.outside_s)},
                       {"passed_s", per_call(l, l.sums.passed_s)},
                       {"starved_share", starved ? json(*starved) : json(nullptr)},
                       {"posted_before_s", seconds_since(l)}});
  }
  return {{"num_ranks", program.num_ranks}, {"ledgers", std::move(ledgers)}};
}

int show_running(const json_output& to) {
  const found_ledger_boards found = find_ledger_boards();
  if (to.text()) print(found);
  nlohmann::ordered_json running = nlohmann::ordered_json::array();
  for (const found_ledgers& b : found.boards) running.push_back(as_json(b));
  to.write(nlohmann::ordered_json{{"running", running}, {"skipped", found.skipped}});
  return succeeded;
}

// ---- dumps

std::string text_of(const select::statistics_dump& dump, const options& o) {
  if (screen().csv)
    return screen().printed(o.hosts ? report::hosts_numbers(dump)
                                    : report::statistics_numbers(dump));
  return o.hosts ? report::hosts_text(dump, o.view, screen())
                 : report::statistics_text(dump, o.view, screen());
}

int run(const options& o) {
  if (o.running) return show_running(o.json);
  if (o.file.empty())
    throw usage_error("the argument 'dump' is missing: give a file, or --running");
  const select::statistics_dump dump = files::read_statistics(o.file);
  if (o.json.text()) screen().words() << text_of(dump, o);
  o.json.write(files::to_json(dump));
  return succeeded;
}

}  // namespace

const verb stats_verb{
    "  RAILPASS_STATS=dump.json mpirun -n 4 ./program && railpass stats dump.json\n"
    "  railpass stats dump.json --csv > dump.csv\n"
    "  railpass stats dump.json --hosts\n"
    "  railpass stats --running\n"
    "prior and posterior are mean times (x/1.20: the true mean is likely within a factor of "
    "1.20).\n"
    "next is the probability that the next call takes the arm. won counts the paired trials that\n"
    "the arm won against native; the speedup over native is estimated from these trials.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "dump", o->file, "file written by RAILPASS_STATS or dump_statistics")
          .value_name("FILE");
      add_flag(app, "--markdown", o->view.markdown, "tables as Markdown");
      add_flag(app, "--all", o->view.all, "show all contexts and arms, not only the most used");
      add_flag(app, "--hosts", o->hosts,
               "show hosts that come late, lack cores or have slow links");
      add_flag(app, "--running", o->running, "show the boards of programs that run on this host")
          .excludes("dump")
          .excludes("--hosts");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
