// SPDX-License-Identifier: BSL-1.0
//
// Checks of what spoils a measurement or a run: settings, profile and MPI library of the job;
// cores, frequency, load and copies between processes of each host.
#pragma once

#include "lib/measure/job.hpp"
#include "lib/report/output.hpp"
#include "lib/runtime/settings_in_force.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace railpass::internal::measure {

/// The result of one check.
struct finding {
  std::string check;
  std::string host{};  ///< empty: holds for the job
  bool ok = true;
  std::string message{};
};

/// What is checked once for the whole job.
struct checked_job {
  std::string built_for;  ///< the MPI library; empty: unknown
  std::string profile;    ///< path; empty: no profile
  settings_in_force settings;
};

std::vector<finding> examine_job(const checked_job& what, int num_hosts);
/// The host of a process without other ranks.
std::vector<finding> examine_host();
/// Each host is examined by its first rank; rank 0 gets all findings. Collective over
/// MPI_COMM_WORLD.
std::vector<finding> examine_hosts(const job& j);

std::size_t num_problems(const std::vector<finding>& findings);
void print(const std::vector<finding>& findings, report::output& out);
nlohmann::ordered_json to_json(const std::vector<finding>& findings);

}  // namespace railpass::internal::measure
