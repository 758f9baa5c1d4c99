// SPDX-License-Identifier: BSL-1.0
//
// The job that a launcher is about to start ranks in: its hosts, how many ranks each is to have and
// how many cores, as the launcher's own options, batch systems and launchers' host files say. What
// they do not say, or say in a way that is not understood, is unknown: nothing here throws but
// reserved_ranks.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::launch {

struct planned_host {
  int slots = 0;               ///< ranks that are to start there
  std::optional<int> cores{};  ///< nothing: unknown
  std::string name{};          ///< "": unknown
};

/// More ranks than cores, on a host or on all hosts together.
struct crowd {
  int ranks = 0, cores = 0;
};

struct planned_job {
  std::vector<planned_host> hosts;  ///< empty: unknown

  std::optional<int> slots() const;
  /// The crowded host or hosts if `ranks` ranks start. Nothing if each host has enough cores, or if
  /// the cores are unknown.
  std::optional<crowd> crowd_of(int ranks) const;
};

/// A variable of the environment, or nothing.
using lookup = std::function<std::optional<std::string>(const char* variable)>;
lookup environment();

/// Hosts and ranks in the options of a launcher.
struct launcher_words {
  std::optional<int> ranks{}, ranks_per_host{};
  std::vector<planned_host> hosts{};  ///< empty: none are named
};
/// The options among the words behind a launcher's name, up to the program. Nothing if an option is
/// unknown, or if the words start several programs: the user's words alone then place ranks.
std::optional<launcher_words> parse_launcher_words(std::span<const std::string> words);

/// The job whose hosts the launcher's words name, else that which Slurm, PBS, LSF or Grid Engine
/// has made, or that a launcher's default host file says; else the cores of this host.
planned_job find_planned_job(const lookup& variable, int cores_here,
                             const launcher_words& said = {});
/// How many ranks a batch system has reserved. Throws usage_error that names a malformed variable.
std::optional<int> reserved_ranks(const lookup& variable);

/// Cores that this process may use.
int cores_of_this_host();

// Readers of single forms; nothing for what they do not understand.

/// Slurm's list with a number for each node: "64(x2),32".
std::optional<std::vector<int>> parse_node_counts(std::string_view text);
/// LSF's "hostA 4 hostB 2".
std::optional<planned_job> parse_host_pairs(std::string_view text);
/// Grid Engine's PE_HOSTFILE: "host slots queue processors" in each line.
std::optional<planned_job> parse_pe_hostfile(std::string_view text);
/// PBS' file of nodes: a line for each rank.
std::optional<planned_job> parse_node_file(std::string_view text);
/// A launcher's list of hosts: "a,b:4".
std::optional<planned_job> parse_host_list(std::string_view text);
/// Host files of Open MPI ("host slots=4"), MPICH and Intel MPI ("host:4"): a line for each host.
std::optional<planned_job> parse_host_file(std::string_view text);

}  // namespace railpass::internal::launch
