// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/findings.hpp"

#include "lib/base/join.hpp"
#include "lib/exec/single_copy.hpp"
#include "lib/files/files.hpp"
#include "lib/runtime/known_faults.hpp"
#include "railpass/base/units.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <stdlib.h>
#include <string_view>

namespace railpass::internal::measure {

namespace {

// Without blanks, as there may be tabs in the place of spaces.
std::string squeezed(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c != ' ' && c != '\t') result += c;
  return result;
}

// "MPICHVersion:", in front of the number.
std::string name_before_version(const std::string& library) {
  const std::string text = squeezed(library);
  return text.substr(0, text.find_first_of("0123456789"));
}

// A build for one version of a library runs with its other versions. A build for MPICH or for the
// standard ABI runs with any library that has this binary interface.
bool has_interface_of(const std::string& built, const std::string& running) {
  return name_before_version(built) == name_before_version(running) ||
         (built.starts_with("MPICH") && running.starts_with("Intel(R) MPI")) ||
         built.starts_with("the standard");
}

// 5.0.1 is not 5.0.10.
bool is_version(const std::string& built, const std::string& running) {
  constexpr std::string_view of_number = "0123456789.";
  return running.starts_with(built) &&
         (running.size() == built.size() ||
          of_number.find(running[built.size()]) == std::string_view::npos);
}

finding check_mpi(const std::string& built, const fingerprint& here) {
  const std::string running = here.mpi_library.substr(0, here.mpi_library.find_first_of(",\n"));
  if (built.empty()) return {.check = "mpi library", .message = running};
  if (is_version(squeezed(built), squeezed(here.mpi_library)))
    return {.check = "mpi library", .message = "runs with the " + built + " it was built for"};
  if (has_interface_of(built, running))
    return {.check = "mpi library", .message = "built for " + built + ", runs with " + running};
  return {
      .check = "mpi library",
      .ok = false,
      .message = "railpass was built for " + built + " but runs with " + running +
                 ": build railpass for this MPI, or start railpass with the MPI it was built for"};
}

finding check_settings(const settings_in_force& read) {
  if (read.problems.empty())
    return {.check = "settings",
            .message = std::to_string(read.origins.size()) + " set, all understood"};
  return {.check = "settings", .ok = false, .message = join(read.problems, "; ")};
}

finding check_profile(const std::string& path, const fingerprint& here) {
  if (path.empty())
    return {
        .check = "profile",
        .message =
            "not set: learning starts from generic constants (run `railpass sample` and `railpass "
            "fit`)"};
  try {
    files::read_profile(path, here);
    return {.check = "profile", .message = path + " is of this machine"};
  } catch (const error& problem) {
    return {.check = "profile", .ok = false, .message = problem.what()};
  }
}

finding check_plan(const std::string& path, const fingerprint& here) {
  if (path.empty())
    return {.check = "plan", .message = "not set: programs learn during their runs"};
  try {
    files::parse_plan(files::read_text(path), path, here);
    return {.check = "plan", .message = path + " is for this machine"};
  } catch (const error& problem) {
    return {.check = "plan",
            .ok = false,
            .message = std::string(problem.what()) + "; every call goes to the MPI library"};
  }
}

bool are_set(const std::map<std::string, std::string>& settings) {
  return std::ranges::all_of(settings, [](const auto& setting) {
    const char* const value = std::getenv(setting.first.c_str());
    return value && value == setting.second;
  });
}

std::vector<finding> check_known_faults(const std::string& site_file, const fingerprint& here,
                                        int num_ranks) {
  std::vector<finding> found;
  try {
    for (const knowledge::advisory& a : known_faults(site_file, here.mpi_library)) {
      if (!knowledge::may_meet(a, num_ranks, here.num_hosts)) continue;
      found.push_back({.check = "known fault", .message = text_of(a), .is_note = true});
      if (!a.settings.empty() && are_set(a.settings)) found.back().message += ", as is set here";
      if (a.avoid) found.back().message += "; railpass does not use " + *a.avoid;
    }
  } catch (const error& problem) {
    found.push_back({.check = "known fault", .ok = false, .message = problem.what()});
  }
  return found;
}

finding check_ranks(int ranks_here, const fingerprint& here) {
  finding f{.check = "ranks and cores",
            .message = std::to_string(ranks_here) + (ranks_here == 1 ? " rank on " : " ranks on ") +
                       std::to_string(here.cores_per_host) + " cores"};
  if (here.cores_per_host <= 0 || ranks_here <= here.cores_per_host) return f;
  const auto is = [&](const char* name) {
    return here.mpi_library.find(name) != std::string::npos;
  };
  const auto is_set = [](const char* variable, std::initializer_list<std::string_view> wanted) {
    const char* value = std::getenv(variable);
    return value && std::find(wanted.begin(), wanted.end(), value) != wanted.end();
  };
  if ((is("Open MPI") && is_set("OMPI_MCA_mpi_yield_when_idle", {"1", "true", "yes"})) ||
      (is("MPICH") && is_set("MPIR_CVAR_POLLS_BEFORE_YIELD", {"1"})) ||
      (is("Intel(R) MPI") && is_set("I_MPI_THREAD_YIELD", {"2", "3"}))) {
    f.message += ", and waiting ranks give way";
    return f;
  }
  f.ok = false;
  f.message +=
      ": waiting ranks take cores from ranks that work, and calls take 5 to 1000 times as long; ";
  f.message += is("Open MPI")       ? "start with mpirun --mca mpi_yield_when_idle 1"
               : is("MPICH")        ? "start with MPIR_CVAR_POLLS_BEFORE_YIELD=1"
               : is("Intel(R) MPI") ? "start with I_MPI_THREAD_YIELD=3"
                                    : "start fewer ranks";
  return f;
}

finding check_governor() {
  std::vector<std::string> governors;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/devices/system/cpu", ignored)) {
    std::ifstream file(entry.path() / "cpufreq/scaling_governor");
    std::string governor;
    if (file >> governor &&
        std::find(governors.begin(), governors.end(), governor) == governors.end())
      governors.push_back(governor);
  }
  if (governors.empty()) return {.check = "frequency governor", .message = "not visible here"};
  const std::string names = join(governors);
  const bool steady = governors == std::vector<std::string>{"performance"};
  return {.check = "frequency governor",
          .ok = steady,
          .message = steady ? names
                            : names +
                                  ": the frequency changes with the load, so times vary; run "
                                  "`cpupower frequency-set -g performance`"};
}

finding check_load(int ranks_here, const fingerprint& here) {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return {.check = "load", .message = "not visible here"};
  const int free_cores = here.cores_per_host - std::min(ranks_here, here.cores_per_host);
  finding f{.check = "load",
            .message = fixed(load, 2) + " on " + std::to_string(here.cores_per_host) + " cores"};
  // One core's half is noise; more means that somebody else works here.
  f.ok = here.cores_per_host <= 0 || load < 0.5 + free_cores;
  if (!f.ok)
    f.message += ": other programs use the cores, so times vary; run railpass on an idle machine";
  return f;
}

// `tried`: whether the ranks of this host may; nothing if there is only one.
finding check_single_copies(std::optional<bool> tried) {
  const std::uint64_t word = 1;
  if (!single_copy_probe::of(word).can_copy()) tried = false;
  finding f{.check = "copies between processes", .ok = tried.value_or(true)};
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  f.message = !f.ok   ? "refused (process_vm_readv): long messages within a host are copied twice"
              : tried ? "allowed"
                      : "not tried (run `mpirun -n 2 railpass doctor`)";
  if (scope > 0) f.message += "; kernel.yama.ptrace_scope is " + std::to_string(scope);
  return f;
}

}  // namespace

std::vector<finding> examine_job(const checked_job& what, const fingerprint& here, int num_ranks) {
  std::vector<finding> all{
      what.mpi_problem.empty()
          ? check_mpi(what.built_for, here)
          : finding{.check = "mpi library", .ok = false, .message = what.mpi_problem},
      check_settings(what.settings), check_profile(what.profile, here),
      check_plan(what.settings.values.plan, here)};
  std::ranges::move(check_known_faults(what.settings.values.advisories, here, num_ranks),
                    std::back_inserter(all));
  return all;
}

std::vector<finding> examine_host(int ranks_here, const fingerprint& here,
                                  std::optional<bool> copies) {
  return {check_ranks(ranks_here, here), check_governor(), check_load(ranks_here, here),
          check_single_copies(copies)};
}

std::size_t num_problems(const std::vector<finding>& findings) {
  return std::size_t(std::ranges::count(findings, false, &finding::ok));
}

void print(const std::vector<finding>& findings, report::output& out) {
  report::table lines({"check", "host", "ok", "message"});
  for (const finding& f : findings) {
    lines.add({f.check, f.host, f.ok ? "yes" : "no", f.message});
    out.words() << (f.is_note ? "  note    "
                    : f.ok    ? out.toned(report::tone::good, "  ok      ")
                              : out.toned(report::tone::bad, "  PROBLEM "))
                << out.wrapped(f.check + (f.host.empty() ? "" : " on " + f.host) + ": " + f.message,
                               10)
                << '\n';
  }
  if (out.csv) out.printed(lines);
  const std::size_t wrong = num_problems(findings);
  out.words() << (wrong == 0 ? "No problem was found.\n"
                             : std::to_string(wrong) + (wrong == 1 ? " problem" : " problems") +
                                   " found.\n");
}

nlohmann::ordered_json to_json(const std::vector<finding>& findings) {
  auto list = nlohmann::ordered_json::array();
  for (const finding& f : findings)
    list.push_back({{"check", f.check}, {"host", f.host}, {"ok", f.ok}, {"message", f.message}});
  return list;
}

}  // namespace railpass::internal::measure
