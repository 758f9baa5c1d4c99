// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/doctor_report.hpp"
#include "lib/cli/mpi/parallel.hpp"
#include "lib/measure/findings_of_ranks.hpp"
#include "lib/preload/mpi_of_build.hpp"

namespace railpass::internal::cli {
namespace {

// What holds for the job is rank 0's view.
int examine(const doctor_options& o, const measure::job& j) {
  const std::vector<measure::finding> of_hosts = measure::examine_hosts(j);
  int status = succeeded;
  on_rank_0(j, [&] {
    measure::checked_job what = checked_job_of(o);
    what.built_for = mpi_of_build();
    const fingerprint here = measure::machine_marks(j.num_nodes());
    status = conclude(o, measure::examine_job(what, here, j.num_ranks), of_hosts);
  });
  return measure::agreed(status);
}

int run(const doctor_options& o) {
  return run_job([&](const measure::job& j) { return examine(o, j); });
}

}  // namespace

const verb doctor_verb{doctor_examples, [](CLI::App& app) { return declare_doctor(app, run); }};

}  // namespace railpass::internal::cli
