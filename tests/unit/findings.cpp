// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/findings.hpp"

#include "lib/files/files.hpp"
#include "support/catch.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>

using namespace railpass;
using namespace railpass::internal;

namespace {

measure::finding mpi_finding(const std::string& built_for, const std::string& running,
                             const std::string& problem = {}) {
  return measure::examine_job(
             {.built_for = built_for, .mpi_problem = problem, .profile = {}, .settings = {}},
             {.mpi_library = running}, 1)
      .front();
}

}  // namespace

TEST_CASE("an MPI library of the same name is right, whatever its version") {
  const measure::finding same = mpi_finding("Open MPI v4.1.4", "Open MPI v4.1.4, package: Debian");
  CHECK(same.ok);
  CHECK(same.message == "runs with the Open MPI v4.1.4 it was built for");
  const measure::finding newer =
      mpi_finding("Open MPI v4.1.4", "Open MPI v5.0.11, package: Open MPI");
  CHECK(newer.ok);
  CHECK(newer.message == "built for Open MPI v4.1.4, runs with Open MPI v5.0.11");
  CHECK(mpi_finding("Open MPI v5.0.1", "Open MPI v5.0.10, package: Open MPI").message ==
        "built for Open MPI v5.0.1, runs with Open MPI v5.0.10");
  CHECK(mpi_finding("MPICH Version: 4.0.2", "MPICH Version:\t4.3.2\nMPICH Release").ok);
}

TEST_CASE("an MPI library of another name is a problem, unless it has the same binary interface") {
  const std::string intel = "Intel(R) MPI Library 2021.19 for Linux* OS";
  CHECK_FALSE(mpi_finding("Open MPI v4.1.4", intel).ok);
  CHECK(mpi_finding("MPICH Version: 4.0.2", intel).ok);
  CHECK_FALSE(mpi_finding("Open MPI v4.1.4", "MPICH Version: 4.0.2").ok);
  CHECK(mpi_finding("the standard MPI ABI 1.0", intel).ok);
}

TEST_CASE("more ranks than cores are a problem unless ranks that wait give way") {
  const fingerprint here{.cores_per_host = 2, .mpi_library = "Intel(R) MPI Library 2021.19"};
  const auto found = [&] { return measure::examine_host(3, here, std::nullopt).front(); };
  unsetenv("I_MPI_THREAD_YIELD");
  CHECK_FALSE(found().ok);
  CHECK_THAT(found().message, ContainsSubstring("start with I_MPI_THREAD_YIELD=3"));
  setenv("I_MPI_THREAD_YIELD", "3", 1);
  CHECK(found().ok);
  CHECK(found().message == "3 ranks on 2 cores, and waiting ranks give way");
}

TEST_CASE("a plan that programs refuse is a problem") {
  const std::string path = "findings_plan.json";
  const auto found = [&](const std::string& plan, const fingerprint& here) {
    measure::checked_job what{.built_for = {}, .mpi_problem = {}, .profile = {}, .settings = {}};
    what.settings.values.plan = plan;
    for (const measure::finding& f : measure::examine_job(what, here, 2))
      if (f.check == "plan") return f;
    return measure::finding{};
  };
  const fingerprint here{.num_hosts = 2, .mpi_library = "Open MPI v5.0.1", .rails = "tcp"};
  files::write_text(path, files::to_json(knowledge::plan{.machine = knowledge::marks_for_plan(here),
                                                         .written_at = "now"}));
  CHECK(found("", here).message == "not set: programs learn during their runs");
  CHECK(found(path, here).ok);
  CHECK(found(path, here).message == "findings_plan.json is for this machine");
  const measure::finding refused = found(path, {.mpi_library = "Open MPI v5.0.2"});
  CHECK_FALSE(refused.ok);
  CHECK_THAT(refused.message, ContainsSubstring("this plan is for another machine"));
  CHECK_THAT(found("missing.json", here).message,
             ContainsSubstring("every call goes to the MPI library"));
  std::remove(path.c_str());
}

TEST_CASE("an MPI library that cannot be loaded is a problem") {
  const measure::finding found = mpi_finding("", "", "libmpi.so.40: no such file");
  CHECK_FALSE(found.ok);
  CHECK(found.message == "libmpi.so.40: no such file");
}
