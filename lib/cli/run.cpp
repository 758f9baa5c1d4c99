// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/preload/mpi_of_build.hpp"
#include "railpass/mpi.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sched.h>
#include <sstream>
#include <unistd.h>

extern "C" char** environ;

namespace railpass::cli {
namespace {

struct options {
  int ranks = 1;
  std::string launcher;
  bool verbose = false;
};

enum class launcher_kind { unknown, open_mpi, hydra, intel, slurm };

struct launcher {
  launcher_kind kind = launcher_kind::unknown;
  std::vector<std::string> command{};  // the program, and options of the user's
};

// For /bin/sh, to start what is found and to show what is started.
std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789_-+=./,:@%") == std::string::npos)
    return word;
  std::string result = "'";
  for (const char c : word)
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  return result + "'";
}

std::string output_of(const std::string& command) {
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) return text;
  std::array<char, 4096> buffer;
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe.get()))
    text.append(buffer.data(), got);
  return text;
}

// Whose launcher this is, by what it says of itself.
launcher_kind kind_of(const std::string& program) {
  if (std::filesystem::path(program).filename() == "srun") return launcher_kind::slurm;
  const std::string says = output_of(quoted(program) + " --version 2>&1 </dev/null");
  const auto contains = [&](const char* text) { return says.find(text) != std::string::npos; };
  if (contains("Open MPI") || contains("OpenRTE") || contains("PRRTE"))
    return launcher_kind::open_mpi;
  if (contains("Intel(R) MPI")) return launcher_kind::intel;
  if (contains("HYDRA")) return launcher_kind::hydra;
  return launcher_kind::unknown;
}

launcher_kind kind_of_build() {
  const std::string_view family = mpi_family_of_build();
  if (family == "Open MPI") return launcher_kind::open_mpi;
  return family == "MPICH" ? launcher_kind::hydra : launcher_kind::intel;
}

launcher find_launcher(const options& o) {
  launcher found;
  if (!o.launcher.empty()) {
    std::istringstream words(o.launcher);
    for (std::string word; words >> word;) found.command.push_back(word);
    if (found.command.empty()) throw usage_error("--launcher: expected a command");
    found.kind = kind_of(found.command.front());
    if (found.kind == launcher_kind::unknown)
      throw usage_error("--launcher '" + found.command.front() +
                        "': expected the mpiexec of Open MPI, MPICH or Intel MPI, or srun");
    return found;
  }
  // The usual names may belong to any MPI, so the one that railpass was built with comes first.
  for (const char* name :
       {RAILPASS_MPIEXEC, "mpiexec", "mpirun", "mpiexec.openmpi", "mpiexec.mpich", "mpiexec.hydra"})
    if (kind_of(name) == kind_of_build()) return {.kind = kind_of_build(), .command = {name}};
  throw error("no mpiexec of " + std::string(mpi_family_of_build()) +
              " was found in PATH; --launcher names one");
}

// It lies beside librailpass, in the build as where it is installed.
std::string preload_library() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&mpi::last_arm), &self) && self.dli_fname) {
    const auto path =
        std::filesystem::canonical(self.dli_fname).parent_path() / "librailpass_preload.so";
    if (std::filesystem::exists(path)) return path.string();
    throw error("'" + path.string() + "' is not there: expected beside librailpass");
  }
  throw error("librailpass_preload.so was not found");
}

int cores_here() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

std::vector<std::string> command_for(const options& o, const launcher& found,
                                     const std::vector<std::string>& program) {
  std::vector<std::string> command = found.command;
  const auto add = [&](std::initializer_list<std::string> words) {
    command.insert(command.end(), words);
  };
  const char* const before = std::getenv("LD_PRELOAD");
  const std::string preload =
      preload_library() + (before && *before ? std::string(":") + before : std::string());
  add({"-n", std::to_string(o.ranks)});

  const int cores = cores_here();
  if (o.launcher.empty() && cores > 0 && o.ranks > cores) {
    std::cerr << "railpass run: " << o.ranks << " ranks on the " << cores
              << " cores of this host: ranks that wait take turns with those that work\n";
    if (found.kind == launcher_kind::open_mpi)
      add({"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"});
  }
  switch (found.kind) {
    case launcher_kind::open_mpi:
      // Ranks on other hosts get no variables by themselves.
      add({"-x", "LD_PRELOAD=" + preload});
      for (char** variable = environ; *variable; ++variable) {
        const std::string_view text = *variable;
        if (text.starts_with("RAILPASS_") || text.starts_with("RAILPASS="))
          add({"-x", std::string(text.substr(0, text.find('=')))});
      }
      break;
    case launcher_kind::hydra:
    case launcher_kind::intel:
      add({"-genv", "LD_PRELOAD", preload});  // all others they pass on by themselves
      break;
    case launcher_kind::slurm:
      add({"--export=ALL,LD_PRELOAD=" + preload});
      break;
    case launcher_kind::unknown:
      break;
  }
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

int run(const options& o, const std::vector<std::string>& program) {
  if (program.empty()) throw usage_error("expected a program to start");
  if (o.ranks < 1) throw usage_error("-n: expected at least 1 rank");
  const std::vector<std::string> command = command_for(o, find_launcher(o), program);
  if (o.verbose) {
    std::cerr << "railpass run:";
    for (const std::string& word : command) std::cerr << ' ' << quoted(word);
    std::cerr << '\n';
  }
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::cerr.flush();
  execvp(words.front(), words.data());
  throw error("'" + command.front() + "' cannot be started: " + std::strerror(errno));
}

}  // namespace

const verb run_verb{
    "run", "Start an unmodified MPI program so that its collectives are tuned",
    "  railpass run -n 8 ./program argument\n"
    "  RAILPASS_STATS=dump.json railpass run -n 64 --launcher 'mpiexec --hostfile hosts' "
    "./program\n"
    "The ranks get librailpass_preload.so and all RAILPASS_ variables. RAILPASS=off switches it "
    "off.\nThe program must use the MPI that railpass was built for; if it does not, one sentence "
    "says so\nand it runs untuned.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      app.add_option("-n,--ranks", o->ranks, "how many ranks")->required();
      app.add_option("--launcher", o->launcher,
                     "the command that starts ranks, with its own options; by default the mpiexec "
                     "of the MPI that railpass was built for")
          ->type_name("COMMAND");
      app.add_flag("--verbose", o->verbose, "print the command that is started");
      app.prefix_command();
      return [o, &app] { return run(*o, app.remaining()); };
    }};

}  // namespace railpass::cli
