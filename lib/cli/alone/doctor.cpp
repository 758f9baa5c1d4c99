// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/alone/helper.hpp"
#include "lib/cli/doctor_report.hpp"
#include "lib/cli/launched.hpp"
#include "lib/launch/engine.hpp"
#include "lib/measure/marks.hpp"

namespace railpass::internal::cli {
namespace {

int run(const doctor_options& o) {
  if (under_launcher()) become_helper();
  measure::checked_job what = checked_job_of(o);
  launch::mpi_marks mpi;
  try {
    mpi = launch::marks_of(launch::engine_of_this_job());
  } catch (const error& problem) {
    what.mpi_problem = problem.what();
  }
  what.built_for = mpi.built_for;
  const fingerprint here = measure::marks_with(mpi.library, 1);
  return conclude(o, measure::examine_job(what, here, 1), measure::examine_host(1, here, {}));
}

}  // namespace

const verb doctor_verb{doctor_examples, [](CLI::App& app) { return declare_doctor(app, run); }};

}  // namespace railpass::internal::cli
