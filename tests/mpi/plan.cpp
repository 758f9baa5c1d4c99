// SPDX-License-Identifier: BSL-1.0
//
// A program that follows a plan: each call takes the arm that the plan names or is native, results
// are right, and nothing is timed or learnt.
#include "lib/files/files.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/sums.hpp"

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <unistd.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::sums;

namespace {

// Before MPI begins, as users would. The ranks have files of their own with the same content.
const std::string path = [] {
  knowledge::plan p{.written_at = "2026-01-31T12:00:00Z"};
  for (int ranks = 2; ranks <= 8; ++ranks)
    for (int ranks_per_node = 1; ranks_per_node <= ranks; ++ranks_per_node) {
      const auto add = [&](std::string collective, std::string operation, std::int64_t from,
                           std::optional<std::int64_t> to, std::string variant) {
        p.calls.push_back({.collective = std::move(collective),
                           .operation = std::move(operation),
                           .num_ranks = ranks,
                           .ranks_per_node = ranks_per_node,
                           .from_bytes = from,
                           .to_bytes = to,
                           .variant = std::move(variant)});
      };
      add("all_reduce", "builtin", 64, 4095, "recursive_doubling");
      add("all_reduce", "builtin", 4096, {}, "ring");
      add("broadcast", "none", 0, {}, "binomial");
      add("all_to_allv", "none", 0, {}, "scattered");
    }
  std::string name = "/tmp/railpass-plan-" + std::to_string(getpid()) + ".json";
  files::write_text(name, files::to_json(p));
  setenv("RAILPASS_PLAN", name.c_str(), 1);
  return name;
}();

communicator planned_communicator() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  mpi::start_tuning(comm);
  return communicator(comm);
}

}  // namespace

TEST_CASE("calls take the arms of the plan from the first call on, others are native") {
  const communicator comm = planned_communicator();
  REQUIRE(process::get()->plan());
  const bool alone = comm.size() == 1;
  const auto arm = [&](const std::string& planned) { return alone ? "native" : planned; };
  for (int again = 0; again < 300; ++again) {
    REQUIRE(sums(comm, 32));
    CHECK(mpi::last_arm(comm) == arm("recursive_doubling"));
    REQUIRE(sums(comm, 8));
    CHECK(mpi::last_arm(comm) == "native");
    REQUIRE(sums(comm, 5000));
    CHECK(mpi::last_arm(comm) == arm("ring"));
    int value = comm.rank() == 0 ? again : -1;
    REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, comm) == MPI_SUCCESS);
    CHECK(value == again);
    CHECK(mpi::last_arm(comm) == arm("binomial"));
    REQUIRE(mpi::barrier(comm) == MPI_SUCCESS);
    CHECK(mpi::last_arm(comm) == "native");
  }
  const select::statistics_dump learnt = process::get()->statistics();
  CHECK(learnt.contexts.empty());
  CHECK(learnt.merges == 0);
}

TEST_CASE("where only pairs of ranks know the sizes, the arm serves all sizes") {
  const communicator comm = planned_communicator();
  const int size = comm.size(), rank = comm.rank();
  for (int call = 0; call < 40; ++call) {
    std::vector<int> counts, displacements, sent, received;
    for (int r = 0; r < size; ++r) {
      counts.push_back((rank + r) % 3 * call);
      displacements.push_back(int(sent.size()));
      sent.insert(sent.end(), std::size_t(counts.back()), rank * 100 + r);
    }
    received.assign(sent.size() + 1, -1);
    sent.push_back(-1);
    REQUIRE(mpi::all_to_allv(sent.data(), counts.data(), displacements.data(), MPI_INT,
                             received.data(), counts.data(), displacements.data(), MPI_INT,
                             comm) == MPI_SUCCESS);
    for (int r = 0; r < size; ++r)
      for (int i = 0; i < counts[std::size_t(r)]; ++i)
        REQUIRE(received[std::size_t(displacements[std::size_t(r)] + i)] == r * 100 + rank);
    CHECK(mpi::last_arm(comm) == (size == 1 ? "native" : "scattered"));
  }
}

TEST_CASE("a pinned arm and an arm that a call asks for come before the plan") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  mpi::configure(comm, "use", "all_reduce:ring");
  mpi::start_tuning(comm);
  REQUIRE(sums(comm, 32));
  CHECK(mpi::last_arm(comm) == "ring");
  int value = 7;
  REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, comm, collect(use("chain"))) == MPI_SUCCESS);
  CHECK(mpi::last_arm(comm) == "chain");
}

TEST_CASE("the plan's file may end while the program follows it") {
  CHECK(std::remove(path.c_str()) == 0);
  const communicator comm = planned_communicator();
  CHECK(sums(comm, 32));
  CHECK(mpi::last_arm(comm) == (comm.size() == 1 ? "native" : "recursive_doubling"));
}
