// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/bench.hpp"

#include "lib/cli/launched.hpp"
#include "lib/cli/mpi/parallel.hpp"
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/launch/launcher.hpp"
#include "lib/launch/planned_job.hpp"
#include "lib/launch/ranks.hpp"
#include "lib/measure/bench_tables.hpp"
#include "lib/measure/launches.hpp"
#include "lib/measure/workload.hpp"
#include "lib/runtime/settings_in_force.hpp"
#include "railpass/base/names.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"
#include "railpass/version.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string collectives = "broadcast,all_reduce";
  std::string bytes = "64KiB,1MiB";
  std::string arms;
  std::string budget = "60s";
  std::string clock = "barrier";
  int root = 0;
  int learning = 0;
  bool all = false;
  int launches = 0;  // 0: this process is a rank
  std::optional<int> ranks;
  std::string launcher;
  json_output json;
};

struct request {
  std::vector<collective> ops;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> arms;  // empty: all
  double budget_s = 60;
};

void check_own_arm(const std::string& name) {
  try {
    libraries::parse_own_arm(name);
  } catch (const error& wrong) {
    throw usage_error(std::string("--arms: ") + wrong.what());
  }
}

bool wants_own_algorithms(const request& r) {
  return std::ranges::any_of(r.arms, [](const std::string& arm) { return is_own_algorithm(arm); });
}

constexpr const char* chosen_at_start =
    "because this MPI library chooses the algorithms of a launch at its start; railpass bench "
    "--launches N measures each algorithm in launches of its own";

// The arms native:ALGORITHM that no collective of the request has.
void check_own_algorithms(const request& r, const measure::own_algorithms& own) {
  for (const std::string& name : r.arms) {
    if (!is_own_algorithm(name)) continue;
    const std::string wanted = libraries::parse_own_arm(name).name;
    std::vector<std::string> known;
    for (const collective op : r.ops)
      for (const own_algorithm& a : own.of(op)) known.push_back(a.name);
    if (known.empty())
      throw usage_error("--arms '" + name +
                        "': the MPI library lets no algorithm of these collectives be forced");
    if (wanted != "all" && std::ranges::find(known, wanted) == known.end())
      throw usage_error("--arms '" + name + "': " + expected_one_of(wanted, known));
  }
  if (!own.can_force(r.arms) && std::ranges::all_of(r.arms, is_own_algorithm))
    throw usage_error("--arms: expected native beside native:ALGORITHM, " +
                      std::string(chosen_at_start));
}

std::vector<own_algorithm> named_algorithms(const request& r, const measure::own_algorithms& own) {
  std::vector<own_algorithm> all;
  for (const std::string& name : r.arms)
    if (is_own_algorithm(name))
      for (const collective op : r.ops)
        for (const own_algorithm& a : own.named(op, libraries::parse_own_arm(name)))
          if (std::ranges::find(all, a) == all.end()) all.push_back(a);
  return all;
}

// Everything that can be wrong is found before MPI is initialised.
request parse(const options& o) {
  request r;
  r.ops = parse_collectives("--collectives", o.collectives);
  r.sizes = parse_sizes("--bytes", o.bytes, largest_message_bytes);
  r.budget_s = parse_duration_s("--budget", o.budget);
  if (o.arms.empty()) return r;
  for (const std::string& name : split_list("--arms", o.arms)) {
    if (std::find(r.arms.begin(), r.arms.end(), name) != r.arms.end()) continue;
    r.arms.push_back(name);
    if (name == "native" || name == "tuned" || name == "all") continue;
    if (is_own_algorithm(name)) {
      check_own_arm(name);
      continue;
    }
    // An arm must be one of some collective; where it is not, it is not measured.
    std::optional<usage_error> wrong;
    bool known = false;
    for (const collective op : r.ops) try {
        arm_of_option("--arms", op, name);
        known = true;
      } catch (const usage_error& why) {
        if (!wrong) wrong = why;
      }
    if (!known) throw *wrong;
  }
  return r;
}

std::int64_t whole_message_bytes(collective op, std::int64_t bytes, int num_ranks) {
  try {
    return measure::whole_message_bytes(op, bytes, num_ranks);
  } catch (const error& wrong) {
    throw usage_error(std::string("--bytes: ") + wrong.what());
  }
}

// The measurements at each size; equal on all ranks, as the profile is rank 0's.
std::vector<measure::cell_request> cells_of(const request& r, const options& o,
                                            const measure::job& j, const profile* knowledge,
                                            const measure::own_algorithms* own) {
  std::vector<measure::cell_request> cells;
  for (const collective op : r.ops)
    for (const std::int64_t size : r.sizes) {
      const std::int64_t bytes = whole_message_bytes(op, size, j.num_ranks);
      if (std::ranges::any_of(cells, [&](const auto& c) { return c.op == op && c.bytes == bytes; }))
        continue;
      cells.push_back({.op = op,
                       .bytes = bytes,
                       .root = o.root,
                       .contestants = measure::contestants_of(r.arms, op, bytes, j, knowledge, own),
                       .own = own,
                       .learning = o.learning,
                       .round_time = o.clock == "round_time"});
      if (cells.back().contestants.empty())
        throw usage_error("--arms '" + o.arms + "': no arm can run " + std::string(name_of(op)) +
                          " of " + format_bytes(bytes) + " on " + std::to_string(j.num_ranks) +
                          " ranks");
    }
  return cells;
}

using option_values = std::map<std::string, std::string>;

// This command line for the ranks, without the options of the launching process; `instead`: other
// values of options.
std::vector<std::string> words_for_ranks(const CLI::App& app, const option_values& instead = {}) {
  static constexpr std::string_view ours[] = {"ranks", "launches", "launcher", "json",
                                              "csv",   "wide",     "help"};
  std::vector<std::string> words{std::filesystem::canonical("/proc/self/exe").string(), "bench"};
  for (const CLI::Option* const option : app.get_options()) {
    const std::string name = option->get_lnames().empty() ? "" : option->get_lnames().front();
    if (option->count() == 0 || std::ranges::find(ours, name) != std::end(ours) ||
        instead.contains(name))
      continue;
    const bool flag = option->get_items_expected_max() == 0;
    words.push_back("--" + name + (flag ? "" : "=" + option->results().front()));
  }
  for (const auto& [name, value] : instead) words.push_back("--" + name + "=" + value);
  words.insert(words.end(), {"--json", "-"});
  return words;
}

using launching = std::function<bench_results(const std::string& name, const option_values&)>;

// Measures each algorithm of an MPI library that chooses at its start in a launch of its own. These
// launches share the budget of one launch.
void launch_own_algorithms(bench_results& by_default, const request& wanted,
                           const launching& launch) {
  const libraries::mpi_library* const library = libraries::find(by_default.machine_id.mpi_library);
  if (!library || library->read != libraries::variables_read::at_start) return;
  std::map<std::int64_t, std::vector<std::string>> collectives;  // by the algorithm's number
  for (const own_algorithm& a : by_default.own_algorithms)
    if (std::ranges::find(by_default.results, libraries::name_of({a.name, 0}),
                          &bench_result::arm) == by_default.results.end())
      collectives[a.number].push_back(a.collective);
  for (const auto& [number, ops] : collectives) {
    const std::string arm = libraries::name_of({std::to_string(number), 0});
    try {
      measure::add_own_algorithm(
          by_default,
          launch(arm, {{"arms", arm},
                       {"collectives", join(ops, ",")},
                       {"budget", fixed(wanted.budget_s / double(collectives.size()), 3)}}));
    } catch (const tune::interrupted&) {
      throw;
    } catch (const error& wrong) {
      by_default.notes["left_out/" + arm] = wrong.what();
    }
  }
}

int start(const options& o, const CLI::App& app) {
  const request wanted = parse(o);
  if (is_rank())
    throw usage_error(
        "--launches: railpass starts the ranks itself; expected no mpirun around railpass bench");
  const std::optional<int> ranks =
      o.ranks ? o.ranks : launch::reserved_ranks(launch::environment());
  if (!ranks || *ranks < 2) throw usage_error("-n: expected a number of ranks of at least 2");
  o.json.check();
  const launch::starter found = launch::find_starter(o.launcher, {}, words_for_ranks(app).front());
  // Against ranks that hang; who measures takes about the budget.
  const double limit_s = 600 + 10 * wanted.budget_s;
  std::vector<bench_results> launches;
  std::vector<std::string> problems;
  std::set<std::string> ignored;  // lines about settings
  {
    report::progress_bar bar("bench", true);
    const auto launch = [&](const std::string& name, const option_values& instead) {
      bar.show(double(launches.size()) / o.launches, name);
      const tune::command_result done =
          launch::run_ranks(found, *ranks, {}, words_for_ranks(app, instead), limit_s);
      // Arms with wrong results are not among the results, which are otherwise complete.
      const std::size_t wrong_at = done.failure.find("wrong results: ");
      if (wrong_at != std::string::npos)
        problems.push_back(name + ": " + done.failure.substr(wrong_at));
      else if (!done.failure.empty())
        throw error(name + ": " + done.failure);
      for (const std::string& line : launch::ignored_settings_in(done.errors))
        if (ignored.insert(line).second) {
          bar.hide();
          std::cerr << printable(line) << '\n';
        }
      return files::parse_bench(done.output, name);
    };
    for (int i = 1; i <= o.launches; ++i) try {
        const std::string name =
            "launch " + std::to_string(i) + " of " + std::to_string(o.launches);
        bench_results one = launch(name, {});
        launch_own_algorithms(one, wanted,
                              [&](const std::string& arm, const option_values& instead) {
                                return launch(name + ", " + arm, instead);
                              });
        launches.push_back(std::move(one));
      } catch (const error& problem) {
        if (launches.empty()) throw;
        // The launches that have ended are worth their time.
        problems.push_back(std::string(problem.what()) + "; the results are of " +
                           std::to_string(launches.size()) + " launches");
        break;
      }
  }
  const bench_results all = measure::over_launches(launches);
  if (o.json.text()) measure::print_launches(all, int(launches.size()), o.all, screen());
  o.json.write(files::to_json(all));
  if (!problems.empty()) throw error(join(problems, "; "));
  return succeeded;
}

int run(const options& o) {
  const request wanted = parse(o);
  if (wants_own_algorithms(wanted)) measure::own_algorithms::prepare(wanted.arms, wanted.ops);
  return run_job([&](const measure::job& j) {
    if (j.num_ranks < 2) throw usage_error("expected at least 2 ranks: mpirun -n 2 railpass bench");
    check_root(o.root, j.num_ranks);
    std::optional<measure::own_algorithms> own;
    if (wants_own_algorithms(wanted)) check_own_algorithms(wanted, own.emplace(j));
    std::optional<profile> knowledge;
    std::string profile_text;
    bench_results all = measure::begin_bench(j);
    const std::string profile_path = read_settings(environ).values.profile;
    on_rank_0(j, [&] {
      o.json.check();
      if (!profile_path.empty())
        profile_text = files::to_json(files::read_profile(profile_path, all.machine_id));
    });
    measure::broadcast_text(profile_text);
    if (!profile_text.empty()) knowledge = files::parse_profile(profile_text, profile_path);

    all.notes = {{"railpass_version", RAILPASS_VERSION},
                 {"hosts", join(j.hosts)},
                 {"cpu_model", all.machine_id.cpu_model},
                 {"mpi_library", all.machine_id.mpi_library},
                 {"profile", profile_path},
                 {"policy", read_settings(environ).values.policy},
                 {"budget_s", fixed(wanted.budget_s, 3)},
                 {"clock", o.clock},
                 {"root", std::to_string(o.root)}};
    const bool speaks = j.rank == 0 && o.json.text();
    if (speaks) measure::print_where(all, screen());
    if (speaks && own && std::ranges::find(wanted.arms, "native:all") != wanted.arms.end())
      for (const auto& [algorithm, fault] : own->left_out())
        screen().words() << "Left out: native:" << algorithm.second << ", " << fault << '\n';

    std::vector<std::string> wrong, missed;
    {
      report::progress_bar bar("bench", j.rank == 0);
      measure::measure_cells(
          j, cells_of(wanted, o, j, knowledge ? &*knowledge : nullptr, own ? &*own : nullptr),
          wanted.budget_s, all,
          [&](double fraction, const std::string& doing) { bar.show(fraction, doing); },
          [&](const measure::cell_request& cell, const measure::cell_result& result) {
            const std::string title = measure::title_of(std::string(name_of(cell.op)), cell.bytes);
            if (speaks) {
              bar.hide();
              measure::print_cell(result, title, o.all, screen());
            }
            for (const measure::not_shown& m : result.missed)
              missed.push_back(title + " against " + m.other + ": " + fixed(m.ratio.low, 3) + ".." +
                               fixed(m.ratio.high, 3));
            for (const std::string& label : result.wrong) wrong.push_back(title + " by " + label);
          });
    }
    if (speaks && !missed.empty()) {
      screen().words() << "Not shown to be as fast (95 % interval of tuned / other):\n";
      for (const std::string& one : missed) screen().words() << "  " << one << '\n';
    }
    if (speaks)
      screen().words()
          << "Intervals hold for this launch; launches may differ by more (see --launches)\n";
    if (own && !own->can_force(wanted.arms)) {
      all.own_algorithms = named_algorithms(wanted, *own);
      if (speaks) screen().words() << "Left out: native:ALGORITHM, " << chosen_at_start << '\n';
    }
    all.notes["missed"] = join(missed);
    on_rank_0(j, [&] { o.json.write(files::to_json(all)); });
    if (!wrong.empty()) throw error("wrong results: " + join(wrong));
    return int(succeeded);
  });
}

}  // namespace

const verb bench_verb{
    "  railpass bench --launches 6 -np 4 --bytes 64KiB --json bench.json\n"
    "  mpirun -n 4 railpass bench --bytes 64KiB,1MiB --budget 60s --json bench.json\n"
    "  mpirun -n 8 railpass bench --collectives broadcast --arms native,tuned,chain\n"
    "  railpass bench --launches 6 -np 4 --arms native,native:all,native:all:32KiB \\\n"
    "      --json own.json\n"
    "  RAILPASS_PROFILE=profile.json mpirun -n 8 railpass bench --learning 100\n"
    "One run measures all arms in turn. With --launches N railpass starts the ranks N times and\n"
    "shows how launches differ. If a launch fails, the results are of the launches before. The "
    "exit\n"
    "status is 1 if a result was wrong or a launch failed.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "--collectives", o->collectives, "collectives to measure, or all")
          .value_name("NAMES")
          .show_default();
      add_option(app, "--bytes", o->bytes,
                 "message sizes (the sum of all ranks' blocks, if there are blocks), "
                 "rounded up to whole elements")
          .value_name("SIZES")
          .show_default();
      add_option(app, "--arms", o->arms,
                 "native, tuned, or arms such as pipeline+segment_bytes=8KiB; all: every arm; "
                 "default: native,tuned,all. native:ALGORITHM[:SEGMENT]: the MPI library's call "
                 "with one of its own "
                 "algorithms; native:all: with each of them")
          .value_name("NAMES");
      add_option(app, "--budget", o->budget, "approximate time for all measurements")
          .value_name("TIME")
          .show_default();
      add_option(
          app, "--clock", o->clock,
          "barrier: each repetition follows a barrier; round_time: each repetition begins on "
          "all ranks at one instant of synchronised clocks, and does not count if a rank is "
          "late")
          .value_name("NAME")
          .one_of({"barrier", "round_time"})
          .show_default();
      add_option(app, "--root", o->root, "root of rooted collectives")
          .value_name("RANK")
          .show_default();
      add_option(app, "--learning", o->learning,
                 "also measure the first N tuned calls without any knowledge, in turn with the "
                 "MPI library's and the fastest arm")
          .value_name("N")
          .range(1, 1000000);
      add_flag(app, "--all", o->all, "print all arms, not only the fastest");
      add_option(app, "--launches", o->launches,
                 "start the ranks N times, each time for the whole budget; medians and "
                 "intervals refer to the launches")
          .value_name("N")
          .range(1, 1000);
      add_option(app, "-n,--ranks", o->ranks,
                 "with --launches: number of ranks (also -np); default: the number that the batch "
                 "system has reserved")
          .needs("--launches");
      add_option(app, "--launcher", o->launcher,
                 "with --launches: the command that starts ranks, with its own options; "
                 "default: the mpiexec of railpass's MPI")
          .value_name("COMMAND")
          .needs("--launches");
      o->json.declare(app);
      return [o, &app] { return o->launches > 0 ? start(*o, app) : run(*o); };
    }};

}  // namespace railpass::internal::cli
