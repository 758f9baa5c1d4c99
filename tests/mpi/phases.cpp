// SPDX-License-Identifier: BSL-1.0
//
// Schedules whose phases are in the memory of hosts and of messages between these by turns: who may
// use them when, and that MPI goes on meanwhile. The last rank is alone on its host.
#include "collectives/registry.hpp"
#include "lib/group/node_memory.hpp"
#include "railpass/mpi.hpp"
#include "support/call_railpass.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/host_facts.hpp"
#include "support/large_message.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

constexpr const char* adding_arm = "nodes_shared_recursive_doubling";

// All ranks but the last stand on two hosts by turns. Before the first base is made.
void stand_on_hosts(const communicator& world) {
  std::string hosts;
  for (int r = 0; r < world.size(); ++r) hosts += r + 1 == world.size() ? '2' : char('0' + r % 2);
  ::setenv("TEST_HOSTS", hosts.c_str(), 1);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
}

std::unique_ptr<communicator> part_of(const communicator& of, int color, int key) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(of, color, key, &made);
  return std::make_unique<communicator>(made);
}

bool adds_up(const communicator& comm, std::int64_t salt) {
  const std::int64_t mine = salt + comm.rank(), p = comm.size();
  std::int64_t sum = -1;
  return mpi::all_reduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, comm, collect(use(adding_arm))) ==
             MPI_SUCCESS &&
         sum == p * salt + p * (p - 1) / 2;
}
bool ran_in_phases(const communicator& comm) { return mpi::last_arm(comm) == adding_arm; }

}  // namespace

TEST_CASE("the first communicators of several hosts have phases in memory, later ones in turn") {
  const communicator world = communicator::duplicate_of_world();
  stand_on_hosts(world);
  const bool matter = test::facts_of_hosts(world).matter();
  CHECK(matter == (world.size() > 3));
  CHECK(adds_up(world, 1));
  CHECK(ran_in_phases(world) == matter);
  std::vector<std::unique_ptr<communicator>> live;
  const auto add = [&] {
    live.push_back(part_of(world, 0, -world.rank()));
    REQUIRE(mpi::start_tuning(*live.back()) == MPI_SUCCESS);
  };
  const auto in_phases = [&] {
    int count = 0;
    for (std::size_t i = 0; i < live.size(); ++i)
      for (int call = 0; call < 3; ++call) {
        CHECK(adds_up(*live[i], std::int64_t(i) + call));
        count += call == 0 && ran_in_phases(*live[i]) ? 1 : 0;
      }
    return count;
  };
  for (int i = 0; i < node_memory::most_slots + 2; ++i) add();
  const int most = matter ? node_memory::most_slots - 1 : 0;  // the world has one
  CHECK(in_phases() == most);
  for (int round = 0; round < 3; ++round) {
    live.erase(live.begin() + round, live.begin() + round + 4);
    for (int i = 0; i < 4; ++i) add();
    CHECK(in_phases() == most);
  }
}

TEST_CASE("slots go from communicators on one host to those on several and back") {
  const communicator world = communicator::duplicate_of_world();
  stand_on_hosts(world);
  const int p = world.size();
  for (int round = 0; round < 40; ++round) {
    const int width = 1 + round % p;
    const auto row =
        part_of(world, (world.rank() + round / 3) / width, round % 2 == 0 ? 0 : -world.rank());
    REQUIRE(mpi::start_tuning(*row) == MPI_SUCCESS);
    for (int call = 0; call < round % 4; ++call) {
      CHECK(adds_up(*row, round * 10 + call));
      CHECK(ran_in_phases(*row) == test::facts_of_hosts(*row).matter());
    }
  }
  CHECK(adds_up(world, 1));
}

TEST_CASE("a large message goes on while its sender waits in a phase") {
  const communicator world = communicator::duplicate_of_world();
  stand_on_hosts(world);
  if (!test::facts_of_hosts(world).matter()) return;
  const int p = world.size(), rank = world.rank();
  test::large_message message(world);
  for (const algorithm* a : all_algorithms) {
    if (!a->needs.shared_memory || a->needs.max_nodes == 0 || a->needs.equal_nodes) continue;
    for (const int root : {0, p - 1}) {
      CAPTURE(name_of(a->op), a->name, root);
      std::vector<std::int64_t> in(std::size_t(p), rank + 1), out(std::size_t(p), -1);
      const call c{.op = a->op,
                   .send = {.memory = in.data(), .count = 1, .type = MPI_INT64_T},
                   .receive = {.memory = out.data(), .count = 1, .type = MPI_INT64_T},
                   .operation = MPI_SUM,
                   .root = root,
                   .comm = world};
      message.goes_on_during([&] {
        CHECK(call_railpass(c, collect(use(std::string(a->name)))) == MPI_SUCCESS);
        CHECK(mpi::last_arm(world) == a->name);
      });
    }
  }
}
