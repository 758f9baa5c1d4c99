// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/doctor_report.hpp"

#include "lib/cli/environment.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <utility>

namespace railpass::internal::cli {

const char* const doctor_examples =
    "  railpass doctor\n"
    "  mpirun -n 8 railpass doctor --profile profile.json --json -\n"
    "Under mpirun it also examines the ranks and every host. Notes name the known faults of the "
    "MPI\n"
    "library. The exit status is 1 if a problem is found.\n";

std::function<int()> declare_doctor(CLI::App& app, int (*work)(const doctor_options&)) {
  const auto o = std::make_shared<doctor_options>();
  add_option(app, "--profile", o->profile, "a profile to check instead of RAILPASS_PROFILE")
      .value_name("FILE");
  o->json.declare(app);
  return [o, work] { return work(*o); };
}

measure::checked_job checked_job_of(const doctor_options& o) {
  settings_in_force set = checked_settings();
  const std::string profile = o.profile.empty() ? set.values.profile : o.profile;
  return {.built_for = {}, .mpi_problem = {}, .profile = profile, .settings = std::move(set)};
}

int conclude(const doctor_options& o, std::vector<measure::finding> findings,
             const std::vector<measure::finding>& of_hosts) {
  findings.insert(findings.end(), of_hosts.begin(), of_hosts.end());
  if (o.json.text() || screen().csv) measure::print(findings, screen());
  o.json.write(measure::to_json(findings));
  return measure::num_problems(findings) == 0 ? succeeded : failed;
}

}  // namespace railpass::internal::cli
