// SPDX-License-Identifier: BSL-1.0
//
// Hosts exchange data in pairs, as if each rank were a host, and a partner that does not come holds
// up nobody for long.
#include "lib/runtime/link_probe.hpp"

#include "railpass/base/clock.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

constexpr double unlimited_s = std::numeric_limits<double>::infinity();

base_mapping mapping_of(const communicator& comm) {
  REQUIRE(mpi::start_tuning(comm) == MPI_SUCCESS);
  const base_mapping mapping = bases::of_process().find(comm);
  REQUIRE(mapping.of);
  return mapping;
}

select::link_times probed(link_probe& probe, const base_mapping& world,
                          const link_probe::limits& within) {
  std::vector<int> first_ranks(std::size_t(world.num_ranks));
  std::iota(first_ranks.begin(), first_ranks.end(), 0);
  return probe.run(world, first_ranks, world.rank, within);
}

std::vector<double> quickest_s(const select::link_times& times) {
  std::vector<double> all;
  for (std::size_t t = 0; t < select::link_times::num_trials; ++t)
    all.push_back(times.quickest_s(t));
  return all;
}

bool all_unknown(const select::link_times& times) {
  return std::ranges::all_of(quickest_s(times), [](double s) { return std::isnan(s); });
}

}  // namespace

TEST_CASE("each trial has the time of a host that meets two hosts, and no message is left") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() < 2) return;
  const base_mapping world = mapping_of(comm);
  link_probe probe;
  const select::link_times times =
      probed(probe, world, {.until_s = unlimited_s, .budget_s = unlimited_s});
  for (const double s : quickest_s(times)) {
    CHECK(std::isnan(s) == (comm.size() == 2));
    if (comm.size() > 2) CHECK((s > 0 && std::isfinite(s)));
  }
  MPI_Barrier(comm);
  int is_left = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, base::link_tag, world.of->comm, &is_left, MPI_STATUS_IGNORE);
  CHECK(!is_left);
}

TEST_CASE("a host whose time is spent ends the measurement of its partners, too") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() < 2) return;
  const base_mapping world = mapping_of(comm);
  link_probe probe;
  const double budget_s = world.rank == 0 ? 0 : unlimited_s;
  const select::link_times times =
      probed(probe, world, {.until_s = unlimited_s, .budget_s = budget_s});
  if (world.rank == 0 || comm.size() < 4) CHECK(all_unknown(times));
}

// Last, because its messages are never received.
TEST_CASE("a host waits for a partner until its time is over, and the partner then for no host") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() < 2) return;
  const base_mapping world = mapping_of(comm);
  static link_probe probe;
  if (world.rank == 0) {
    MPI_Barrier(comm);  // the other ranks have given up
    const double until_s = steady_clock_s() + 60;
    CHECK(all_unknown(probed(probe, world, {.until_s = until_s, .budget_s = unlimited_s})));
    CHECK(steady_clock_s() < until_s);
    return;
  }
  const double until_s = steady_clock_s() + 0.05;
  const select::link_times times =
      probed(probe, world, {.until_s = until_s, .budget_s = unlimited_s});
  if (comm.size() == 2) CHECK(steady_clock_s() >= until_s);  // otherwise until another host's
  MPI_Barrier(comm);
  CHECK(std::isnan(times.quickest_s(select::link_times::num_trials - 1)));
}
