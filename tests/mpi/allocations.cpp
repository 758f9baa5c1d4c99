// SPDX-License-Identifier: BSL-1.0
//
// Each allocation of one rank fails once, from the set-up of tuning on. Calls then return an error
// or the right result on all ranks, and no rank hangs.
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/host_facts.hpp"
#include "support/replaced_new.hpp"

#include <atomic>
#include <vector>

namespace {

// Number of allocations of this thread until one fails; 0: none fails.
thread_local int failing = 0;

}  // namespace

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (failing > 0 && --failing == 0) throw std::bad_alloc();
  return aligned_memory(bytes, alignment);
}

using namespace railpass;

namespace {

enum class failing_in { beginning, calls, learning, verifying };

// Makes calls with known results. Returns whether the allocation that fails was reached.
bool life_with_failure(const communicator& world, int victim, int n, failing_in where) {
  const int p = world.size(), rank = world.rank();
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(world, &copy);
  const communicator comm(copy);
  if (where == failing_in::learning)
    mpi::configure(comm, "policy", "round_robin");
  else if (test::facts_of_hosts(comm).matter())
    mpi::configure(comm, "use",
                   "broadcast:nodes_shared_postal_tree,all_reduce:nodes_shared_recursive_doubling");
  else
    mpi::configure(comm, "use", "broadcast:binomial,all_reduce:ring");
  if (where == failing_in::verifying) mpi::configure(comm, "verify", "on");
  std::vector<int> data(3000), sum(data.size());
  if (where == failing_in::beginning && rank == victim) failing = n;
  mpi::start_tuning(comm);
  bool failed = rank == victim && failing == 0;
  failing = where != failing_in::beginning && rank == victim ? n : 0;
  bool right = true;
  for (int call = 0; call < 12; ++call) {
    const int root = call % p, count = call % 3 == 0 ? 3000 : 10;
    for (int i = 0; i < count; ++i) data[std::size_t(i)] = rank == root ? call + i : -1;
    if (mpi::broadcast(data.data(), count, MPI_INT, root, comm) == MPI_SUCCESS)
      for (int i = 0; i < count; ++i) right = right && data[std::size_t(i)] == call + i;
    for (int i = 0; i < count; ++i) data[std::size_t(i)] = rank + i;
    if (mpi::all_reduce(data.data(), sum.data(), count, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS)
      for (int i = 0; i < count; ++i)
        right = right && sum[std::size_t(i)] == p * (p - 1) / 2 + p * i;
  }
  if (where != failing_in::beginning) failed = rank == victim && failing == 0;
  failing = 0;
  CHECK(right);
  int found = failed ? 1 : 0;
  MPI_Bcast(&found, 1, MPI_INT, victim, world);
  return found == 1;
}

// Like life_with_failure(), for calls between neighbours of a ring, set-up in a call included.
bool ring_with_failure(const communicator& world, int victim, int n, bool by_messages) {
  const int p = world.size(), rank = world.rank(), periodic = 1;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Cart_create(world, 1, &p, &periodic, 0, &made);
  const communicator comm(made);
  if (by_messages)
    mpi::configure(comm, "use", "neighbor_all_to_allv:pairwise");
  else
    mpi::configure(comm, "policy", "round_robin");
  const int counts[2] = {1, 1}, places[2] = {0, 1};
  int in[2], out[2];
  bool right = true;
  failing = rank == victim ? n : 0;
  for (int call = 0; call < 20; ++call) {
    in[0] = in[1] = call * p + rank;
    out[0] = out[1] = -1;
    if (mpi::neighbor_all_to_allv(in, counts, places, MPI_INT, out, counts, places, MPI_INT,
                                  comm) == MPI_SUCCESS)
      right =
          right && out[0] == call * p + (rank + p - 1) % p && out[1] == call * p + (rank + 1) % p;
  }
  int found = rank == victim && failing == 0 ? 1 : 0;
  failing = 0;
  CHECK(right);
  MPI_Bcast(&found, 1, MPI_INT, victim, world);
  return found == 1;
}

}  // namespace

TEST_CASE("any allocation between neighbours may fail on one rank") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  mpi::start_tuning(world);
  for (const int victim : {0, world.size() - 1})
    for (const bool by_messages : {true, false}) {
      CAPTURE(victim, by_messages);
      int n = 1;
      while (ring_with_failure(world, victim, n, by_messages))
        n = world.size() > 2 ? 5 * n : n < 40 ? n + 1 : n + n / 3;
      CHECK(n > 10);
    }
}

TEST_CASE("any allocation may fail on one rank") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  mpi::start_tuning(world);
  for (const int victim : {0, world.size() - 1})
    for (const failing_in where :
         {failing_in::beginning, failing_in::calls, failing_in::learning, failing_in::verifying}) {
      CAPTURE(victim, int(where));
      // Each failure uses up one of the few slots of shared memory, which arms between hosts need.
      if (where == failing_in::verifying && test::facts_of_hosts(world).matter()) continue;
      int n = 1;
      // On 2 ranks each of the first 40 allocations fails. More ranks would take much longer, as
      // they share cores.
      while (life_with_failure(world, victim, n, where))
        n = world.size() > 2 ? 5 * n : n < 40 ? n + 1 : n + n / 3;
      CHECK(n > 10);
    }
}
