// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/environment.hpp"
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/report/knowledge_analysis.hpp"
#include "lib/report/knowledge_page.hpp"
#include "lib/report/knowledge_tables.hpp"
#include "lib/report/table.hpp"
#include "lib/report/upgrade_tables.hpp"
#include "lib/store/sources.hpp"
#include "lib/store/store.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>

namespace railpass::internal::cli {
namespace {

using nlohmann::ordered_json;

// The options that all subcommands share.
struct options {
  std::string store, collectives = "all", most, output, html;
  double window_percent = 10;
  std::vector<std::string> inputs;
  std::vector<int> ranks;
  std::optional<int> older_than_days;
  bool all = false;
  json_output json;

  store::locations locations() const {
    if (!store.empty()) return {.own = store, .others = {}};
    return knowledge_locations();
  }
};

void say(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems)
    std::cerr << "railpass knowledge: " << printable(problem) << '\n';
}

// "2.4 MiB"
std::string size_text(std::uint64_t bytes) {
  return bytes < 10240       ? std::to_string(bytes) + " B"
         : bytes < 10u << 20 ? fixed(double(bytes) / 1024, 1) + " KiB"
                             : fixed(double(bytes) / (1 << 20), 1) + " MiB";
}

// Lists the files of all locations, each with its own path.
std::vector<std::pair<std::filesystem::path, store::store_contents>> everything(
    const store::locations& from) {
  std::vector<std::pair<std::filesystem::path, store::store_contents>> all;
  all.emplace_back(from.own, store::contents(from.own));
  for (const std::filesystem::path& other : from.others) {
    try {
      all.emplace_back(other, store::contents(other));
    } catch (const error& why) {  // of another user
      all.push_back({other, {.machines = {}, .problems = {why.what()}}});
    }
  }
  return all;
}

int list(const options& o) {
  ordered_json list = ordered_json::array(), problems = ordered_json::array();
  for (const auto& [location, found] : everything(o.locations())) {
    report::table lines(
        {"machine", "runs", "under way", "contexts", "files", "size", "first", "last"});
    for (const store::machine_contents& m : found.machines) {
      std::size_t runs = 0;
      std::string first_at, last_at;
      for (const knowledge::stored_run& r : m.runs) runs += r.ids.size();
      for (const knowledge::experience& e : m.contexts) {
        if (first_at.empty() || e.first_at < first_at) first_at = e.first_at;
        last_at = std::max(last_at, e.last_at);
      }
      list.push_back({{"place", location.string()},
                      {"folder", m.folder.filename().string()},
                      {"machine_id", report::to_json(m.machine)},
                      {"runs", runs},
                      {"under_way", m.under_way.size()},
                      {"contexts", m.contexts.size()},
                      {"files", m.num_files},
                      {"bytes", m.file_bytes},
                      {"first_at", first_at},
                      {"last_at", last_at}});
      lines.add({report::text_of(m.machine), std::to_string(runs),
                 std::to_string(m.under_way.size()), std::to_string(m.contexts.size()),
                 std::to_string(m.num_files), size_text(m.file_bytes), first_at.substr(0, 10),
                 last_at.substr(0, 10)});
    }
    for (const std::string& problem : found.problems) problems.push_back(problem);
    if (!o.json.text()) continue;
    say(found.problems);
    if (lines.empty())
      screen().words() << "No knowledge in " << printable(location.string()) << '\n';
    else
      screen().words()
          << "In " << printable(location.string())
          << " (under way: running, or killed less than a day ago; files: runs that are not in the "
             "database yet)\n"
          << screen().printed(lines, location.string()) << '\n';
  }
  o.json.write(ordered_json{{"machines", list}, {"problems", problems}});
  return succeeded;
}

// Selects contexts as the options say.
class filter {
 public:
  explicit filter(const options& o) : ranks_(o.ranks) {
    if (o.collectives == "all") return;
    for (const collective op : parse_collectives("--collective", o.collectives))
      collectives_.insert(std::string(name_of(op)));
  }
  bool operator()(const knowledge::experience& e) const {
    return !e.arms.empty() && (collectives_.empty() || collectives_.contains(e.of.collective)) &&
           (ranks_.empty() || std::ranges::find(ranks_, e.of.num_ranks) != ranks_.end());
  }
  std::vector<knowledge::experience> of(const std::vector<knowledge::experience>& all) const {
    std::vector<knowledge::experience> wanted;
    std::ranges::copy_if(all, std::back_inserter(wanted), *this);
    return wanted;
  }

 private:
  std::set<std::string> collectives_;
  std::vector<int> ranks_;
};

// The page shows one machine: the machine that was used last.
std::string page_of(const options& o) {
  std::optional<store::machine_contents> latest;
  const auto last_at = [](const store::machine_contents& m) {
    std::string last;
    for (const knowledge::experience& e : m.contexts) last = std::max(last, e.last_at);
    return last;
  };
  for (auto& [location, found] : everything(o.locations()))
    for (store::machine_contents& m : found.machines)
      if (!latest || last_at(m) > last_at(*latest)) latest = std::move(m);
  if (!latest) throw error("no knowledge to show on a page");
  const filter wanted(o);
  std::vector<knowledge::run_record> runs;
  for (const knowledge::stored_run& r : latest->runs) {
    runs.push_back(r.run);
    runs.back().contexts = wanted.of(r.run.contexts);
  }
  return report::knowledge_page(wanted.of(latest->contexts), runs);
}

int analyse(const options& o) {
  const knowledge::analysis_options how{.p_max = o.window_percent / 100};
  const filter wanted(o);
  ordered_json groups = ordered_json::array();
  std::string text;
  for (const auto& [location, found] : everything(o.locations())) {
    if (o.json.text()) say(found.problems);
    for (const store::machine_contents& m : found.machines) {
      const auto analysed = report::analyse_knowledge(wanted.of(m.contexts), how);
      if (analysed.empty()) continue;
      text += report::text_of(m.machine) + " (" + printable(location.string()) + ")\n\n";
      for (const report::analysed_group& g : analysed) {
        text += printable(g.title) + '\n' + screen().printed(g.problems, g.title) + '\n';
        if (!g.predictors.empty()) text += screen().printed(g.predictors, g.title) + '\n';
        groups.push_back({{"machine_id", report::to_json(m.machine)},
                          {"title", g.title},
                          {"problems", g.problems.csv()},
                          {"predictors", g.predictors.empty() ? "" : g.predictors.csv()}});
      }
    }
  }
  if (o.json.text()) screen().words() << (text.empty() ? "No knowledge of that kind.\n" : text);
  o.json.write(ordered_json{{"groups", groups}});
  return succeeded;
}

int show(const options& o) {
  if (!o.html.empty()) {
    write_output(o.html, page_of(o));
    if (!o.json.wanted()) return succeeded;
  }
  const filter wanted(o);
  ordered_json list = ordered_json::array();
  std::string text;
  std::vector<std::string> problems;
  for (const auto& [location, found] : everything(o.locations())) {
    problems.insert(problems.end(), found.problems.begin(), found.problems.end());
    for (const store::machine_contents& m : found.machines) {
      const std::vector<report::best_arms> tables = report::best_arms_of(wanted.of(m.contexts));
      if (tables.empty()) continue;
      text += report::text_of(m.machine) + " (" + printable(location.string()) + ")\n\n";
      for (const report::best_arms& arms : tables) {
        text += printable(arms.title) + '\n' + screen().printed(arms.lines, arms.title) + '\n';
        for (const ordered_json& context : arms.contexts) {
          ordered_json line{{"place", location.string()},
                            {"machine_id", report::to_json(m.machine)}};
          line.update(context);
          list.push_back(std::move(line));
        }
      }
    }
  }
  if (o.json.text()) {
    say(problems);
    screen().words() << (text.empty() ? "No knowledge of that kind.\n" : text);
  }
  o.json.write(ordered_json{{"contexts", list}, {"problems", problems}});
  return succeeded;
}

int compare(const options& o) {
  const filter wanted(o);
  std::vector<knowledge::stored_run> runs;
  std::set<std::vector<std::string>> known;
  std::vector<std::string> problems;
  for (auto& [location, found] : everything(o.locations())) {
    problems.insert(problems.end(), found.problems.begin(), found.problems.end());
    for (store::machine_contents& m : found.machines)
      for (knowledge::stored_run& r : m.runs) {
        if (!known.insert(r.ids).second) continue;
        r.run.contexts = wanted.of(r.run.contexts);
        runs.push_back(std::move(r));
      }
  }
  ordered_json list = ordered_json::array();
  std::string text;
  for (const knowledge::upgrade& u : knowledge::upgrades_of(runs)) {
    list.push_back(report::to_json(u));
    text += report::title_of(u) + '\n';
    if (const report::table lines = report::table_of(u, o.all); !lines.empty())
      text += screen().printed(lines, report::text_of(u.machine)) + '\n';
    text += report::rest_of(u, o.all) + "\n\n";
  }
  if (o.json.text()) {
    say(problems);
    screen().words() << (text.empty() ? "No machine of which runs are known has changed its MPI "
                                        "library, kernel or drivers.\n"
                                      : text);
  }
  o.json.write(ordered_json{{"machines", list}, {"problems", problems}});
  return succeeded;
}

void bring_together(const std::filesystem::path& own, const store::bounds& keep, ordered_json& j,
                    std::string& text) {
  const store::compacted report = store::compact(own, keep);
  say(report.problems);
  j["files"] = report.files;
  j["contexts"] = report.contexts;
  j["dropped"] = report.dropped;
  text += std::to_string(report.files) + " files were joined; " + std::to_string(report.contexts) +
          " contexts in the database";
  if (report.dropped > 0)
    text += ", " + std::to_string(report.dropped) + " were dropped as too old or too many";
  text += '\n';
}

std::string days_ago(int days) {
  const std::time_t then = std::time(nullptr) - std::time_t(days) * 86400;
  std::tm parts{};
  ::gmtime_r(&then, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

int prune(const options& o) {
  store::bounds keep;
  if (!o.most.empty()) {
    const auto most = std::int64_t(keep.most_bytes);  // programs combine files, and keep no more
    keep.most_bytes = std::uint64_t(parse_size("--most", o.most, most));
    if (keep.most_bytes < 65536)
      throw usage_error("--most '" + o.most + "': expected at least 64KiB");
  }
  if (o.older_than_days) keep.not_before = days_ago(*o.older_than_days);
  ordered_json j;
  std::string text;
  bring_together(o.locations().own, keep, j, text);
  if (o.json.text()) screen().words() << text;
  o.json.write(j);
  return succeeded;
}

// All files are read before anything is written.
int add(const options& o, bool stores) {
  std::vector<knowledge::stored_run> runs;
  std::vector<std::string> problems;
  for (const std::string& path : o.inputs)
    std::ranges::move(stores ? store::runs_of(path, problems) : store::runs_of_file(path),
                      std::back_inserter(runs));
  say(problems);
  const std::filesystem::path own = o.locations().own;
  const store::added report = store::merge(own, runs);
  say(report.problems);
  ordered_json j{{"added", report.runs}, {"present", report.present}};
  std::string text = std::to_string(report.runs) + " runs were added";
  if (report.present > 0) text += ", " + std::to_string(report.present) + " were there before";
  text += '\n';
  bring_together(own, {}, j, text);
  if (o.json.text()) screen().words() << text;
  o.json.write(j);
  return succeeded;
}

int merge(const options& o) { return add(o, true); }
int import(const options& o) { return add(o, false); }

int export_all(const options& o) {
  knowledge::collection all{.written_at = files::utc_now()};
  const store::store_contents found = store::contents(o.locations().own);
  say(found.problems);
  for (const store::machine_contents& m : found.machines)
    all.runs.insert(all.runs.end(), m.runs.begin(), m.runs.end());
  write_output(o.output, files::to_json(all));
  return succeeded;
}

void no_options(CLI::App&, options&) {}

void declare_filter(CLI::App& app, options& o) {
  add_option(app, "--collective", o.collectives, "only these collectives, separated by commas")
      .value_name("NAMES")
      .show_default();
  add_option(app, "-p,--ranks", o.ranks, "only communicators with this number of ranks")
      .value_name("RANKS")
      .separated_by(',')
      .range(1, most_ranks);
}

void declare_show(CLI::App& app, options& o) {
  declare_filter(app, o);
  add_option(app, "--html", o.html, "write a page with pictures").value_name("FILE");
}

void declare_analyse(CLI::App& app, options& o) {
  declare_filter(app, o);
  add_option(app, "--window", o.window_percent,
             "arms count as equal to the best up to this difference of time")
      .value_name("PERCENT")
      .range(0.0, 1000.0)
      .show_default();
}

void declare_compare(CLI::App& app, options& o) {
  declare_filter(app, o);
  add_flag(app, "--all", o.all, "also list calls without a significant change");
}

void declare_prune(CLI::App& app, options& o) {
  add_option(app, "--older-than", o.older_than_days,
             "drop contexts that no run of the last DAYS days used")
      .value_name("DAYS")
      .range(0, 36500);
  add_option(app, "--most", o.most,
             "largest size of a machine's database; the least useful contexts are dropped")
      .value_name("SIZE")
      .show_default("8MiB");
}

void declare_inputs(CLI::App& app, options& o) {
  add_option(app, "from", o.inputs, "stores or files to add").value_name("PATH").required();
}

void declare_export(CLI::App& app, options& o) {
  add_option(app, "-o,--output", o.output, "file to write; - is standard output")
      .value_name("FILE")
      .required();
}

struct subcommand {
  const char* name;
  const char* summary;
  void (*declare)(CLI::App&, options&);
  int (*run)(const options&);
  bool has_json = true;
};

constexpr subcommand subcommands[] = {
    {"list", "Machines, runs, contexts, sizes and dates", no_options, list},
    {"show", "The best arm of every context, with its confidence", declare_show, show},
    {"analyse",
     "How well the best arm of one size serves other sizes, and how well sizes predict each other",
     declare_analyse, analyse},
    {"compare", "Which calls take longer since the MPI library, kernel or drivers changed",
     declare_compare, compare},
    {"merge", "Add other stores and their exports, each run once", declare_inputs, merge},
    {"prune", "Join the files of runs, within bounds of size and age", declare_prune, prune},
    {"import", "Add statistics dumps, bench results and exports, each once", declare_inputs,
     import},
    {"export", "Write everything as one JSON file", declare_export, export_all, false},
};

}  // namespace

const verb knowledge_verb{
    "  railpass knowledge list\n"
    "  railpass knowledge show --collective all_reduce -p 32\n"
    "  railpass knowledge show --html knowledge.html\n"
    "  railpass knowledge compare --collective all_reduce\n"
    "  railpass knowledge prune --older-than 180\n"
    "  railpass knowledge import dump.json bench.json\n"
    "  railpass knowledge export -o knowledge.json\n"
    "  railpass knowledge merge ~bob/.local/state/railpass --store /var/lib/railpass\n"
    "The store is --store, else RAILPASS_KNOWLEDGE, else $XDG_STATE_HOME/railpass or\n"
    "~/.local/state/railpass; list, show and compare also read /var/lib/railpass.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      app.require_subcommand(1);
      std::vector<std::pair<const CLI::App*, int (*)(const options&)>> known;
      for (const subcommand& s : subcommands) {
        CLI::App* const sub = app.add_subcommand(s.name, s.summary);
        s.declare(*sub, *o);
        add_option(*sub, "--store", o->store, "another store than the usual one")
            .value_name("PATH");
        if (s.has_json) o->json.declare(*sub);
        known.emplace_back(sub, s.run);
      }
      return [o, known] {
        for (const auto& [sub, run] : known)
          if (sub->parsed()) return run(*o);
        return int(wrong_use);
      };
    }};

}  // namespace railpass::internal::cli
