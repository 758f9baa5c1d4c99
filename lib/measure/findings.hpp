// SPDX-License-Identifier: BSL-1.0
//
// Checks of what spoils a measurement or a run: settings, profile, plan and MPI library of the job;
// known faults of the MPI library; cores, frequency, load and copies between processes of each
// host. Nothing here is linked with MPI.
#pragma once

#include "lib/report/output.hpp"
#include "lib/runtime/settings_in_force.hpp"
#include "models/profile.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal::measure {

/// The result of one check.
struct finding {
  std::string check;
  std::string host{};  ///< empty: holds for the job
  bool ok = true;
  std::string message{};
  bool is_note = false;  ///< worth knowing, and no problem of this machine
};

/// What is checked once for the whole job.
struct checked_job {
  std::string built_for;    ///< the MPI library; empty: unknown
  std::string mpi_problem;  ///< why no MPI library can be loaded; empty: one was loaded
  std::string profile;      ///< path; empty: no profile
  settings_in_force settings;
};

/// @param here the marks of this machine
std::vector<finding> examine_job(const checked_job& what, const fingerprint& here, int num_ranks);
/// The host of `ranks_here` ranks. `copies`: whether they may copy from each other's memory;
/// nothing if that was not tried.
std::vector<finding> examine_host(int ranks_here, const fingerprint& here,
                                  std::optional<bool> copies);

std::size_t num_problems(const std::vector<finding>& findings);
void print(const std::vector<finding>& findings, report::output& out);
nlohmann::ordered_json to_json(const std::vector<finding>& findings);

}  // namespace railpass::internal::measure
