// SPDX-License-Identifier: BSL-1.0
//
// What the two programs' verb `doctor` share: options and output. The program `railpass` examines
// the host that it runs on, its helper the ranks of a job.
#pragma once

#include "lib/cli/verb.hpp"
#include "lib/measure/findings.hpp"

#include <string>
#include <vector>

namespace railpass::internal::cli {

struct doctor_options {
  std::string profile;
  json_output json;
};

/// Declares the options, which `work` gets.
std::function<int()> declare_doctor(CLI::App& app, int (*work)(const doctor_options&));
extern const char* const doctor_examples;

/// What is checked, but for the MPI library.
measure::checked_job checked_job_of(const doctor_options& o);

/// Prints the findings of the job, then those of its hosts, and returns the exit status.
int conclude(const doctor_options& o, std::vector<measure::finding> findings,
             const std::vector<measure::finding>& of_hosts);

}  // namespace railpass::internal::cli
