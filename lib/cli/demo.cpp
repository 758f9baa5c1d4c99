// SPDX-License-Identifier: BSL-1.0
#include "lib/base/join.hpp"
#include "lib/cli/environment.hpp"
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/launch/comparison.hpp"
#include "lib/launch/engine.hpp"
#include "lib/launch/launcher.hpp"
#include "lib/launch/planned_job.hpp"
#include "lib/tune/temporary_folder.hpp"
#include "railpass/select/statistics/summary.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

namespace railpass::internal::cli {
namespace {

struct options {
  std::optional<int> ranks;
  int repetitions = 9;
  int steps = 20000;
};

// Launches that end late have the last ten seconds of the minute.
constexpr double budget_s = 50;
constexpr double limit_s = 60;

// Launchers count cores, and the cores of a host that has hardware threads twice may be half as
// many. More ranks take longer to start than they compute.
int ranks_of_this_host() {
  int threads_of_core = 1;
  if (int active = 0; std::ifstream("/sys/devices/system/cpu/smt/active") >> active && active)
    threads_of_core = 2;
  return std::clamp(launch::cores_of_this_host() / threads_of_core, 2, 16);
}

// The demo's command line, for the first engine whose MPI library has a launcher here.
std::vector<std::string> command_for(const options& o) {
  std::vector<std::string> problems;
  for (const launch::mpi_family family : launch::installed_engines()) try {
      const std::string program = launch::program_of(family, "first");
      launch::require_program(program);
      return {launch::find_launcher(family), "-n",
              std::to_string(o.ranks.value_or(ranks_of_this_host())), program,
              std::to_string(o.steps)};
    } catch (const error& problem) {
      problems.emplace_back(problem.what());
    }
  throw error(join(problems, "; "));
}

// The algorithm that the last tuned run ended with.
std::string chosen_in(const std::string& statistics) {
  const select::statistics_dump dump = files::read_statistics(statistics);
  const auto longest =
      std::ranges::max_element(dump.contexts, {}, &select::context_statistics::time_s);
  if (longest == dump.contexts.end())
    return "No algorithm was chosen: the runs were too short to tune a collective.";
  return "Chosen for " + select::name_of(*longest) + ": " + longest->current_arm +
         (longest->current_arm == longest->baseline ? ", which is the MPI library's own." : ".");
}

int run(const options& o) {
  if (o.repetitions < 1) throw usage_error("--repetitions: expected at least 1");
  if (o.steps < 1) throw usage_error("--steps: expected at least 1");
  if (o.ranks && *o.ranks < 2) throw usage_error("-n: expected at least 2 ranks");
  require_railpass_on();
  const tune::temporary_folder folder;
  // The runs are to be the first ones, and to leave nothing behind.
  setenv("RAILPASS_KNOWLEDGE", "off", 1);
  setenv("RAILPASS_PLAN", "", 1);
  setenv("RAILPASS_STATS", folder.file("statistics.json").c_str(), 1);
  const std::vector<std::string> command = command_for(o);
  std::array<launch::way, 2> ways = launch::both_ways(command, "", limit_s);
  for (launch::way& w : ways) w.command.folder = folder.path();
  std::cout << "The program examples/first/first.c fits a linear model on the cores of this host.\n"
               "Each of its "
            << o.steps << " steps adds up 64 KiB of all ranks with MPI_Allreduce.\n\n"
            << std::flush;
  report::progress_bar progress("demo", true);
  const files::comparison found = launch::run_in_turn(ways, command,
                                                      {.repetitions = o.repetitions,
                                                       .progress = progress,
                                                       .complaints = std::cerr,
                                                       .budget_s = budget_s});
  std::cout << launch::times_of(found, screen()) << chosen_in(folder.file("statistics.json"))
            << '\n'
            << launch::verdict_of(found, screen()) << '\n';
  launch::fail_if_interrupted(found, o.repetitions);
  return succeeded;
}

}  // namespace

const verb demo_verb{
    "  railpass demo\n"
    "  railpass demo -n 4 --repetitions 15\n"
    "An unmodified MPI program in C runs on the local cores, without and with railpass in turn. "
    "Root is\nnot needed, and nothing is kept. Times are of whole runs, start and end included.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "-n,--ranks", o->ranks,
                 "number of ranks; default: the number of cores, from 2 to 16");
      add_option(app, "--repetitions", o->repetitions,
                 "runs of each, in turn; fewer if the runs would take more than a minute")
          .show_default();
      add_option(app, "--steps", o->steps, "steps of each run").show_default();
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
