// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/environment.hpp"
#include "lib/cli/parallel.hpp"
#include "lib/cli/verb.hpp"
#include "lib/measure/findings.hpp"
#include "lib/preload/mpi_of_build.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <utility>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string profile;
  json_output json;
};

measure::checked_job job_of(const options& o) {
  settings_in_force set = checked_settings();
  const std::string profile = o.profile.empty() ? set.values.profile : o.profile;
  return {.built_for = mpi_of_build(), .profile = profile, .settings = std::move(set)};
}

int conclude(const options& o, std::vector<measure::finding> findings,
             const std::vector<measure::finding>& of_hosts) {
  findings.insert(findings.end(), of_hosts.begin(), of_hosts.end());
  if (o.json.text() || screen().csv) measure::print(findings, screen());
  o.json.write(measure::to_json(findings));
  return measure::num_problems(findings) == 0 ? succeeded : failed;
}

// What holds for the job is rank 0's view.
int examine_ranks(const options& o, const measure::job& j) {
  const std::vector<measure::finding> of_hosts = measure::examine_hosts(j);
  int status = succeeded;
  on_rank_0(
      j, [&] { status = conclude(o, measure::examine_job(job_of(o), j.num_nodes()), of_hosts); });
  return measure::agreed(status);
}

int run(const options& o) {
  if (under_launcher()) return run_job([&](const measure::job& j) { return examine_ranks(o, j); });
  return conclude(o, measure::examine_job(job_of(o), 1), measure::examine_host());
}

}  // namespace

const verb doctor_verb{
    "doctor", "Find what spoils a measurement or a run on this machine",
    "  railpass doctor\n"
    "  mpirun -n 8 railpass doctor --profile profile.json --json -\n"
    "Under mpirun it also examines the ranks and every host. The exit status is 1 if something is "
    "found.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "--profile", o->profile, "a profile to check instead of RAILPASS_PROFILE")
          .value_name("FILE");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
