// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/environment.hpp"
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/launch/comparison.hpp"
#include "lib/launch/launcher.hpp"

#include <cstdlib>
#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  int repetitions = 9;
  std::string limit = "60min";
  std::string mpi;
  bool verbose = false;
  json_output json;
};

int run(const options& o, const CLI::App& verb) {
  const std::vector<std::string> command =
      program_of(verb, "a command, such as -- mpirun -n 4 ./program");
  if (o.repetitions < 1) throw usage_error("--repetitions: expected at least 1");
  o.json.check();
  require_railpass_on();
  std::array<launch::way, 2> ways =
      launch::both_ways(command, o.mpi, parse_duration_s("--limit", o.limit));
  if (o.verbose)
    for (const launch::way& w : ways) {
      std::cerr << "railpass compare: " << w.name << ": ";
      for (const auto& [name, value] : w.command.environment)
        std::cerr << name << '=' << launch::quoted(value) << ' ';
      std::cerr << w.command.line << '\n';
    }

  report::progress_bar progress("compare", o.json.text());
  const files::comparison found = launch::run_in_turn(
      ways, command, {.repetitions = o.repetitions, .progress = progress, .complaints = std::cerr});
  if (o.json.text())
    screen().words() << launch::times_of(found, screen()) << launch::verdict_of(found, screen())
                     << '\n'
                     << (found.same_output ? "All runs had the same standard output.\n"
                         : found.same_output_but_numbers
                             ? "All runs had the same standard output except for numbers.\n"
                             : "The standard output of the runs differs.\n");
  o.json.write(files::to_json(found));
  launch::fail_if_interrupted(found, o.repetitions);
  return succeeded;
}

}  // namespace

const verb compare_verb{
    "  railpass compare -- mpirun -n 4 ./program argument\n"
    "  railpass compare --repetitions 15 --json result.json -- srun -n 64 ./program\n"
    "Programs that call railpass themselves run with RAILPASS_ENABLE=off for the comparison. "
    "Times\n"
    "are of whole runs, start and end included. A run that fails ends the comparison. An "
    "interrupt\n"
    "(Ctrl-C) ends it, too: the results are then of the pairs that had ended, and the exit status "
    "is\n"
    "1.\n"
    "Spread is the standard deviation, by the median distance from the median, relative to the\n"
    "median; the interval of the ratio assumes no distribution of times.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "--repetitions", o->repetitions, "runs of each, in turn").show_default();
      add_option(app, "--limit", o->limit, "time limit of each run")
          .value_name("TIME")
          .show_default();
      add_option(app, "--mpi", o->mpi,
                 "openmpi, mpich, intelmpi or mpi_abi: the MPI of the program, if railpass cannot "
                 "find out")
          .value_name("NAME");
      add_flag(app, "--verbose", o->verbose, "print the two commands");
      o->json.declare(app);
      declare_program(app, "-- COMMAND [ARGUMENT...]");
      return [o, &app] { return run(*o, app); };
    }};

}  // namespace railpass::internal::cli
