// SPDX-License-Identifier: BSL-1.0
//
// A late rank shows in the statistics' arrival imbalance, not in the time of the collective. Shared
// cores are detected.
#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/stopped_clock.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sched.h>
#include <string>

using namespace railpass;
using namespace railpass::internal;

namespace {

constexpr double late_s = 50e-3;

/// Rank 0's statistics of the only context of a communicator whose last rank is always late.
template <class Call>
std::optional<select::context_statistics> context_after(const std::string& name, Call call) {
  const communicator comm = communicator::duplicate_of_world();
  MPI_Comm_set_name(comm, name.c_str());
  test::stopped_clock clock;
  mpi::configure(comm, "policy", "round_robin");  // synchronises all the time
  mpi::configure(comm, "hang_report", "0");       // reads the clock as often as it can
  mpi::start_tuning(comm);
  const bool is_late = comm.rank() == comm.size() - 1;
  for (int i = 0; i < 40; ++i) {
    if (is_late) clock.pass(late_s);
    clock.pass_in(is_late ? 0 : late_s, [&] { call(comm); });
  }
  for (const auto& context : process::get()->statistics().contexts)
    if (context.communicator == name) return context;
  return std::nullopt;
}

/// The smallest mean time of an arm: a wait for a synchronisation may replace the wait for the late
/// rank in one call, but not in three.
double least_mean_s(const select::context_statistics& context) {
  double least_s = INFINITY;
  for (const select::arm_statistics& a : context.arms)
    if (a.times.samples >= 3) least_s = std::min(least_s, a.times.mean_s);
  return least_s;
}

}  // namespace

TEST_CASE("a late rank is in the skew of an all_reduce and not in its time") {
  const auto context = context_after("late for an all_reduce", [](MPI_Comm comm) {
    int one = 1, sum = 0;
    CHECK(mpi::all_reduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  });
  if (!context) return;  // one rank, or not the leader
  REQUIRE(context->skew_s);
  CHECK(*context->skew_s > 0.9 * late_s);
  CHECK(least_mean_s(*context) < late_s / 5);
  CHECK_FALSE(context->cost_share);  // the ranks have clocks of their own
}

TEST_CASE("ranks of one host measure what a call costs the program by the clock that they share") {
  const communicator comm = communicator::duplicate_of_world();
  MPI_Comm_set_name(comm, "shares a clock");
  mpi::configure(comm, "policy", "round_robin");
  mpi::start_tuning(comm);
  for (int i = 0; i < 100; ++i) {
    int one = 1, sum = 0;
    CHECK(mpi::all_reduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  }
  for (const auto& context : process::get()->statistics().contexts) {
    if (context.communicator != "shares a clock") continue;
    REQUIRE(context.core_given_share);
    if (*context.core_given_share > 0.1) continue;  // ranks share cores: few times are costs
    REQUIRE(context.cost_share);
    CHECK((*context.cost_share > 0 && *context.cost_share <= 1));
  }
}

TEST_CASE("ranks that share a core are seen to give it away") {
  cpu_set_t own, first;
  REQUIRE(sched_getaffinity(0, sizeof own, &own) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &own)) ++core;
  MPI_Bcast(&core, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CPU_ZERO(&first);
  CPU_SET(core, &first);
  REQUIRE(sched_setaffinity(0, sizeof first, &first) == 0);
  const auto context =
      context_after("on one core", [](MPI_Comm comm) { CHECK(mpi::barrier(comm) == MPI_SUCCESS); });
  CHECK(sched_setaffinity(0, sizeof own, &own) == 0);
  if (!context) return;
  REQUIRE(context->core_given_share);
  CHECK(*context->core_given_share > 0.5);
  CHECK(*context->core_given_share <= 1);
}

TEST_CASE("a late root is in the skew of a broadcast") {
  const auto context = context_after("late for a broadcast", [](MPI_Comm comm) {
    int value = 1, size = 0;
    MPI_Comm_size(comm, &size);
    CHECK(mpi::broadcast(&value, 1, MPI_INT, size - 1, comm) == MPI_SUCCESS);
  });
  if (!context) return;
  REQUIRE(context->skew_s);
  CHECK(*context->skew_s > 0.9 * late_s);
  CHECK(*context->skew_p90_s >= *context->skew_s);
}

TEST_CASE("what railpass itself takes of a call is weighed") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  MPI_Comm_set_name(comm, "weighed");
  mpi::start_tuning(comm);
  // Only settled calls are weighed, and calls on a busy machine settle later.
  std::optional<select::context_statistics> weighed;
  for (int round = 0, is_weighed = 0; round < 100 && !is_weighed; ++round) {
    for (int i = 0; i < 500; ++i) {
      int one = 1, sum = 0;
      CHECK(mpi::all_reduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    }
    for (const auto& context : process::get()->statistics().contexts)
      if (context.communicator == "weighed") weighed = context;
    is_weighed = weighed && weighed->own_s ? 1 : 0;
    PMPI_Bcast(&is_weighed, 1, MPI_INT, 0, comm);
  }
  if (comm.rank() != 0) return;
  REQUIRE(weighed);
  REQUIRE(weighed->own_s);
  CHECK(*weighed->own_s >= 0);
  CHECK(*weighed->own_s < weighed->time_s);
}
