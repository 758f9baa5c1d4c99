// SPDX-License-Identifier: BSL-1.0
#include "lib/launch/launcher.hpp"

#include "lib/base/usage_error.hpp"
#include "lib/launch/planned_job.hpp"
#include "lib/preload/mpi_of_build.hpp"
#include "railpass/base/error.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>
#include <unistd.h>

namespace railpass::internal::launch {
namespace {

struct family_names {
  mpi_family family;
  std::string_view name;  // on the command line
  std::string_view full;  // in sentences
};
constexpr std::array families{
    family_names{mpi_family::open_mpi, "openmpi", "Open MPI"},
    family_names{mpi_family::mpich, "mpich", "MPICH"},
    family_names{mpi_family::intel, "intelmpi", "Intel MPI"},
    family_names{mpi_family::standard, "mpi_abi", "the standard ABI of MPI 5.0"}};

std::string output_of(const std::string& command) {
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) return text;
  std::array<char, 4096> buffer;
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe.get()))
    text.append(buffer.data(), got);
  return text;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Where the shell would find it; empty if it would not.
std::string path_of(const std::string& program) {
  if (contains(program, "/")) return access(program.c_str(), X_OK) == 0 ? program : std::string();
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = folder + '/' + program;
    if (access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file)) return file;
  }
  return {};
}

struct linked_library {
  std::string name, path;
};

// The libraries of an executable, by the dynamic linker. A script has none.
std::vector<linked_library> libraries_of(const std::string& program) {
  const std::string path = path_of(program);
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  char magic[4] = "";
  if (!file.read(magic, 4) || std::string_view(magic, 4) != "\177ELF") return {};
  std::vector<linked_library> found;
  // "	libmpi.so.40 => /usr/lib/libmpi.so.40 (0x...)"
  std::istringstream lines(output_of("ldd " + quoted(path) + " 2>/dev/null </dev/null"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string arrow;
    linked_library library;
    words >> library.name >> arrow >> library.path;
    found.push_back(std::move(library));
  }
  return found;
}

// MPICH's and Intel's libraries may have the same name.
mpi_family family_of_library(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  return contains(content, "Intel(R) MPI Library") ? mpi_family::intel : mpi_family::mpich;
}

}  // namespace

std::string_view name_of(mpi_family family) {
  for (const family_names& f : families)
    if (f.family == family) return f.name;
  return {};
}

std::string full_name(mpi_family family) {
  for (const family_names& f : families)
    if (f.family == family) return std::string(f.full);
  return "an unknown MPI";
}

mpi_family parse_family(std::string_view option, std::string_view name) {
  for (const family_names& f : families)
    if (f.name == name) return f.family;
  throw usage_error(std::string(option) + " '" + std::string(name) +
                    "': expected openmpi, mpich, intelmpi or mpi_abi");
}

mpi_family family_of_build() {
  const std::string_view family = mpi_family_of_build();
  return family == "Open MPI"                   ? mpi_family::open_mpi
         : family == "MPICH"                    ? mpi_family::mpich
         : family == "Intel(R) MPI"             ? mpi_family::intel
         : family == mpi_family_of_standard_abi ? mpi_family::standard
                                                : mpi_family::unknown;
}

void require_program(const std::string& program) {
  if (!path_of(program).empty()) return;
  const bool is_there = contains(program, "/") && access(program.c_str(), F_OK) == 0;
  throw error("'" + program + "' cannot be started: " +
              (is_there                 ? "not executable"
               : contains(program, "/") ? "no such file"
                                        : "not found in PATH"));
}

mpi_family family_of_program(const std::string& program) {
  for (const auto& [name, path] : libraries_of(program)) {
    if (name.starts_with("libmpi_abi.so")) return mpi_family::standard;
    if (name == "libmpi.so.12" || name.starts_with("libmpich.so")) return family_of_library(path);
    if (name.starts_with("libmpi.so")) return mpi_family::open_mpi;
  }
  return mpi_family::unknown;
}

namespace {

launcher_kind kind_by_version(const std::string& program) {
  const std::string says = output_of(quoted(program) + " --version 2>&1 </dev/null");
  if (contains(says, "Open MPI") || contains(says, "OpenRTE") || contains(says, "PRRTE") ||
      contains(says, "PRTE"))
    return launcher_kind::open_mpi;
  if (contains(says, "Intel(R) MPI")) return launcher_kind::intel;
  if (contains(says, "HYDRA")) return launcher_kind::hydra;
  if (says.starts_with("slurm ")) return launcher_kind::slurm;
  return launcher_kind::unknown;
}

}  // namespace

launcher_kind kind_of_launcher(const std::string& program) {
  const std::string name = std::filesystem::path(program).filename();
  if (name == "srun") return launcher_kind::slurm;
  // Other programs might take --version for a wish to begin their work.
  const bool is_named_so = name.starts_with("mpirun") || name.starts_with("mpiexec") ||
                           name == "orterun" || name == "prterun";
  return is_named_so ? kind_by_version(program) : launcher_kind::unknown;
}

launcher_kind kind_of_named_launcher(const std::string& program) {
  const launcher_kind kind = kind_of_launcher(program);
  return kind != launcher_kind::unknown ? kind : kind_by_version(program);
}

bool can_start(launcher_kind kind, mpi_family family) {
  switch (family) {
    case mpi_family::open_mpi:
      return kind == launcher_kind::open_mpi || kind == launcher_kind::slurm;
    case mpi_family::mpich:
    case mpi_family::intel:
      return kind != launcher_kind::open_mpi && kind != launcher_kind::unknown;
    case mpi_family::standard:
    case mpi_family::unknown:
      break;
  }
  return kind != launcher_kind::unknown;
}

mpi_family usual_family(launcher_kind kind) {
  switch (kind) {
    case launcher_kind::open_mpi:
      return mpi_family::open_mpi;
    case launcher_kind::hydra:
      return mpi_family::mpich;
    case launcher_kind::intel:
      return mpi_family::intel;
    case launcher_kind::slurm:
    case launcher_kind::unknown:
      break;
  }
  return mpi_family::unknown;
}

std::string find_launcher(mpi_family family) {
  // The usual names may belong to any MPI.
  for (const char* name : {RAILPASS_MPIEXEC, "mpiexec", "mpirun", "mpiexec.openmpi",
                           "mpiexec.mpich", "mpiexec.hydra"}) {
    const launcher_kind kind = kind_of_launcher(name);
    const bool suits = family == mpi_family::standard ? kind == launcher_kind::hydra
                       : family == mpi_family::intel  ? kind == launcher_kind::intel
                                                      : usual_family(kind) == family;
    if (suits) return name;
  }
  throw error("no mpiexec of " + full_name(family) + " was found in PATH");
}

starter find_starter(const std::string& launcher, const std::string& mpi,
                     const std::string& program) {
  starter found;
  found.family = mpi.empty() ? family_of_program(program) : parse_family("--mpi", mpi);
  if (launcher.empty()) {
    if (found.family == mpi_family::unknown) found.family = family_of_build();
    try {
      found.command = {find_launcher(found.family)};
    } catch (const error& problem) {
      throw error(std::string(problem.what()) + "; name it with --launcher");
    }
    found.kind = kind_of_launcher(found.command.front());
    return found;
  }
  std::istringstream words(launcher);
  for (std::string word; words >> word;) found.command.push_back(word);
  if (found.command.empty()) throw usage_error("--launcher: expected a command");
  found.kind = kind_of_named_launcher(found.command.front());
  if (found.kind == launcher_kind::unknown)
    throw usage_error("--launcher '" + found.command.front() +
                      "': expected the mpiexec of Open MPI, MPICH or Intel MPI, srun, or a script "
                      "that gives its words to one of these (also --version)");
  if (found.family == mpi_family::unknown) found.family = usual_family(found.kind);
  if (found.family == mpi_family::unknown) found.family = family_of_build();
  if (!can_start(found.kind, found.family))
    throw error("'" + program + "' uses " + full_name(found.family) + ", whose ranks '" +
                found.command.front() + "' cannot start");
  return found;
}

namespace {

std::vector<std::string> options_to_give_way(launcher_kind kind) {
  switch (kind) {
    case launcher_kind::open_mpi:
      return {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"};
    case launcher_kind::hydra:
      return {"-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"};
    case launcher_kind::intel:
      return {"-genv", "I_MPI_PIN", "0", "-genv", "I_MPI_THREAD_YIELD", "3"};
    case launcher_kind::slurm:
    case launcher_kind::unknown:
      break;
  }
  return {};
}

}  // namespace

std::vector<std::string> crowd_options(launcher_kind kind, std::span<const std::string> words,
                                       std::optional<int> ranks) {
  std::vector<std::string> options = options_to_give_way(kind);
  const auto said = parse_launcher_words(words);
  if (options.empty() || !said) return {};
  if (!ranks) ranks = said->ranks;
  if (!ranks) return {};
  const planned_job job = find_planned_job(environment(), cores_of_this_host(), *said);
  return job.crowd_of(*ranks) ? options : std::vector<std::string>{};
}

std::vector<std::string> command_of(const starter& by, int ranks,
                                    const std::vector<std::string>& options,
                                    const std::vector<std::string>& program) {
  std::vector<std::string> command = by.command;
  const auto add = [&](const std::vector<std::string>& words) {
    command.insert(command.end(), words.begin(), words.end());
  };
  add({"-n", std::to_string(ranks)});
  add(crowd_options(by.kind, std::span(by.command).subspan(1), ranks));
  add(options);
  add(program);
  return command;
}

std::vector<std::string> passing_options(
    launcher_kind kind, std::span<const std::pair<std::string, std::string>> variables) {
  std::vector<std::string> options;
  switch (kind) {
    case launcher_kind::open_mpi:
      // Ranks on other hosts get no variables by themselves.
      for (const auto& [name, value] : variables)
        options.insert(options.end(), {"-x", name + '=' + value});
      for (char** variable = environ; *variable; ++variable) {
        const std::string name(*variable, std::strcspn(*variable, "="));
        const bool given = std::ranges::any_of(variables, [&](auto& v) { return v.first == name; });
        if (!given && (name == "RAILPASS" || name.starts_with("RAILPASS_")))
          options.insert(options.end(), {"-x", name});
      }
      break;
    case launcher_kind::hydra:
    case launcher_kind::intel:  // all others they pass on by themselves
      for (const auto& [name, value] : variables)
        options.insert(options.end(), {"-genv", name, value});
      break;
    case launcher_kind::slurm:
      options = {"--export=ALL"};
      for (const auto& [name, value] : variables) options[0] += ',' + name + '=' + value;
      break;
    case launcher_kind::unknown:
      break;
  }
  return options;
}

std::string preload_value(const std::string& library, std::span<const std::string> words) {
  std::string sanitizer;  // its runtime ends a program in which it is not the first library
  for (const std::string& word : words)
    for (const linked_library& linked : libraries_of(word))
      if (sanitizer.empty() && linked.name.starts_with("libasan.so")) sanitizer = linked.path + ":";
  const char* const before = std::getenv("LD_PRELOAD");
  return sanitizer + library + (before && *before ? std::string(":") + before : std::string());
}

namespace {

// Others may have executables that the preload library does not reach.
bool starts_one_program(std::span<const std::string> words) {
  return std::ranges::none_of(words, [](const std::string& word) {
    return word == ":" || word == "--multi-prog" || word == "--app" || word == "-app" ||
           word == "--configfile" || word == "-configfile";
  });
}

}  // namespace

std::vector<std::string> preloading_options(launcher_kind kind, const std::string& value,
                                            std::span<const std::string> words) {
  std::vector<std::pair<std::string, std::string>> variables{{"LD_PRELOAD", value}};
  if (starts_one_program(words) && std::getenv("RAILPASS_ALL_RANKS") == nullptr)
    variables.emplace_back("RAILPASS_ALL_RANKS", "on");
  return passing_options(kind, variables);
}

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

std::string quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

}  // namespace railpass::internal::launch
