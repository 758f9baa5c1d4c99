// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/launch/engine.hpp"
#include "lib/launch/launcher.hpp"
#include "lib/launch/planned_job.hpp"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace railpass::internal::cli {
namespace {

struct options {
  std::optional<int> ranks;
  std::string launcher;
  std::string mpi;
  bool verbose = false;
};

std::vector<std::string> command_for(int ranks, const launch::starter& found,
                                     const std::vector<std::string>& program) {
  std::vector<std::string> words = found.command;
  words.insert(words.end(), program.begin(), program.end());
  const std::string value = launch::preload_value(launch::preload_library(found.family), program);
  return launch::command_of(found, ranks, launch::preloading_options(found.kind, value, words),
                            program);
}

int run(const options& o, const CLI::App& verb) {
  const std::vector<std::string> program = program_of(verb, "a program to start");
  const std::optional<int> ranks =
      o.ranks ? o.ranks : launch::reserved_ranks(launch::environment());
  if (!ranks) throw usage_error("-n: expected how many ranks, as no batch system says it");
  if (*ranks < 1) throw usage_error("-n: expected at least 1 rank");
  // On other hosts, where a launcher of the user's may start it, there may be other programs.
  if (o.launcher.empty()) launch::require_program(program.front());
  const std::vector<std::string> command =
      command_for(*ranks, launch::find_starter(o.launcher, o.mpi, program.front()), program);
  if (o.verbose) std::cerr << "railpass run: " << launch::quoted(command) << '\n';
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::cerr.flush();
  execvp(words.front(), words.data());
  throw error("'" + command.front() + "' cannot be started: " + std::strerror(errno));
}

}  // namespace

const verb run_verb{
    "  railpass run -np 8 ./program argument\n"
    "  railpass run -n 64 --launcher 'mpiexec --hostfile hosts' ./program\n"
    "The ranks get librailpass_preload.so and all RAILPASS_ variables. RAILPASS=off switches "
    "railpass\n"
    "off. If railpass is installed for several MPIs, railpass takes the MPI that the program is "
    "linked\n"
    "with, or the MPI of the launcher.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(
          app, "-n,--ranks", o->ranks,
          "number of ranks (also -np); default: the number that the batch system has reserved");
      add_option(app, "--launcher", o->launcher,
                 "the command that starts ranks, with its own options; default: the mpiexec of "
                 "the program's MPI")
          .value_name("COMMAND");
      add_option(app, "--mpi", o->mpi,
                 "openmpi, mpich, intelmpi or mpi_abi: the MPI of the program, if railpass cannot "
                 "find out (scripts); default: the MPI of the launcher or of railpass")
          .value_name("NAME");
      add_flag(app, "--verbose", o->verbose, "print the command that is started");
      declare_program(app, "PROGRAM [ARGUMENT...]");
      return [o, &app] { return run(*o, app); };
    }};

}  // namespace railpass::internal::cli
