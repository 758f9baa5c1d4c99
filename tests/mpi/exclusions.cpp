// SPDX-License-Identifier: BSL-1.0
//
// Excluded algorithms: no rank runs them, also where one rank alone knows of the exclusion.
#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/sums.hpp"

#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::sums;

namespace {

void exclude(collective op, const char* algorithm, std::int64_t from_bytes) {
  process::get()->exclude({.what = find_algorithm(op, algorithm), .from_bytes = from_bytes});
}

void start_pinned(MPI_Comm comm, const char* arms) {
  mpi::configure(comm, "use", arms);
  mpi::start_tuning(comm);
}

}  // namespace

// The tests share a process, whose exclusions stay: their order matters.

TEST_CASE("What one rank excludes, no rank runs") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  if (comm.rank() == comm.size() - 1) exclude(collective::all_reduce, "ring", 1 << 10);
  if (comm.rank() == 0) exclude(collective::all_reduce, "recursive_doubling", 1 << 20);
  start_pinned(comm, "all_reduce:ring");
  for (int again = 0; again < 20; ++again) {
    REQUIRE(sums(comm, 1024));
    CHECK(mpi::last_arm(comm) == "native");
    REQUIRE(sums(comm, 100));
    CHECK(mpi::last_arm(comm) == "ring");
  }
  CHECK(process::get()->exclusions().all().size() == 2);  // on all ranks
}

TEST_CASE("Learning leaves out what is excluded") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  mpi::configure(comm, "policy", "round_robin");
  mpi::start_tuning(comm);
  for (int again = 0; again < 500; ++again) {
    REQUIRE(sums(comm, 1024));
    REQUIRE(mpi::last_arm(comm) != "ring");
  }
  if (comm.rank() != 0) return;
  for (const auto& c : process::get()->statistics().contexts)
    for (const auto& a : c.arms)
      if (c.from_bytes >= 1 << 10) CHECK(a.arm != "ring");
}

TEST_CASE("What one rank alone knows holds from the first call of a communicator on") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  if (comm.rank() == comm.size() - 1) exclude(collective::reduce, "native", 0);
  for (int again = 0; again < 20; ++again) {
    int one = 1, sum = 0;
    REQUIRE(mpi::reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, comm) == MPI_SUCCESS);
    CHECK(mpi::last_arm(comm) != "native");
    if (comm.rank() == 0) CHECK(sum == comm.size());
  }
}

TEST_CASE("Where native is excluded, an arm of railpass runs from the first tuned call on") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  if (comm.rank() == comm.size() / 2) {
    exclude(collective::all_reduce, "native", 0);
    exclude(collective::all_to_allv, "native", 0);
  }
  mpi::start_tuning(comm);
  for (int again = 0; again < 200; ++again) {
    REQUIRE(sums(comm, 16));
    CHECK(mpi::last_arm(comm) != "native");
    int value = comm.rank() == 0 ? again : -1;
    REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, comm) == MPI_SUCCESS);
    CHECK(value == again);
  }
}

TEST_CASE("Where native is excluded, no setting and no option selects native") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  start_pinned(comm, "all_reduce:native");
  for (int again = 0; again < 20; ++again) {
    REQUIRE(sums(comm, 16));
    CHECK(mpi::last_arm(comm) != "native");
  }
  const communicator small = communicator::duplicate_of_world();
  mpi::configure(small, "min_bytes", "1MiB");
  mpi::start_tuning(small);
  REQUIRE(sums(small, 16));
  CHECK(mpi::last_arm(small) != "native");
}

TEST_CASE("Blocks of unknown lengths go without native, too") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  mpi::start_tuning(comm);
  const int size = comm.size(), rank = comm.rank();
  std::vector<int> sent, received(std::size_t(size), -1), ones(std::size_t(size), 1), places;
  for (int r = 0; r < size; ++r) {
    sent.push_back(rank * 100 + r);
    places.push_back(r);
  }
  for (int again = 0; again < 100; ++again) {
    REQUIRE(mpi::all_to_allv(sent.data(), ones.data(), places.data(), MPI_INT, received.data(),
                             ones.data(), places.data(), MPI_INT, comm) == MPI_SUCCESS);
    CHECK(mpi::last_arm(comm) != "native");
    for (int r = 0; r < size; ++r) REQUIRE(received[std::size_t(r)] == r * 100 + rank);
  }
}

TEST_CASE("What one rank excludes later, no rank runs after the next synchronisation") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  mpi::configure(comm, "policy", "round_robin");
  mpi::start_tuning(comm);
  const auto arm_of_gather = [&] {
    int one = 1;
    std::vector<int> all(std::size_t(comm.size()));
    REQUIRE(mpi::gather(&one, 1, MPI_INT, all.data(), 1, MPI_INT, 0, comm,
                        collect(use("binomial"))) == MPI_SUCCESS);
    return mpi::last_arm(comm);
  };
  CHECK(arm_of_gather() == "binomial");
  if (comm.rank() == comm.size() - 1) exclude(collective::gather, "binomial", 0);
  for (int again = 0; again < 200; ++again) REQUIRE(mpi::barrier(comm) == MPI_SUCCESS);
  CHECK(arm_of_gather() == "native");
  CHECK(process::get()->exclusions().has(*find_algorithm(collective::gather, "binomial"), {}));
}

TEST_CASE("Where no arm of railpass is left, native runs") {
  const communicator comm = communicator::duplicate_of_world();
  if (comm.size() == 1) return;
  for (const algorithm* a : all_algorithms)
    if (a->op == collective::scan) process::get()->exclude({.what = a});
  mpi::start_tuning(comm);
  for (int again = 0; again < 20; ++again) {
    int in = comm.rank() + 1, out = 0;
    REQUIRE(mpi::scan(&in, &out, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(out == (comm.rank() + 1) * (comm.rank() + 2) / 2);
    CHECK(mpi::last_arm(comm) == "native");
  }
}
