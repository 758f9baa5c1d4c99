// SPDX-License-Identifier: BSL-1.0
//
// Memory that the ranks of a host share: cases without such memory, ownership of slots, and
// progress of MPI while a rank waits in shared memory.
#include "collectives/registry.hpp"
#include "lib/group/base.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/function_set.hpp"
#include "railpass/mpi.hpp"
#include "support/call_railpass.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/large_message.hpp"
#include "support/records.hpp"
#include "support/single_copies.hpp"
#include "support/stopped_clock.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

// As where a timer interrupts the process: no allocation of much memory ever ends, and every second
// one of little memory does.
extern "C" int fallocate(int fd, int mode, off_t begin, off_t bytes) {
  static std::atomic<int> calls = 0;
  if (bytes <= 64 << 10 && ++calls % 2 == 0)
    return int(syscall(SYS_fallocate, fd, mode, begin, bytes));
  errno = EINTR;
  return -1;
}

namespace {

using owned = std::unique_ptr<communicator>;

// A communicator of the ranks with the same color; none for MPI_UNDEFINED.
owned part_of_world(int color) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, rank, &made);
  return made == MPI_COMM_NULL ? nullptr : std::make_unique<communicator>(made);
}
owned copy_of_world() { return part_of_world(0); }

// Returns whether an all_reduce that should run in shared memory is right.
bool adds_up(const communicator& comm, std::int64_t salt) {
  const std::int64_t mine = salt + comm.rank(), p = comm.size();
  std::int64_t sum = -1;
  return mpi::all_reduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, comm, collect(use("shared_flat"))) ==
             MPI_SUCCESS &&
         sum == p * salt + p * (p - 1) / 2;
}
bool ran_in_memory(const communicator& comm) { return mpi::last_arm(comm) == "shared_flat"; }

int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}
int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

// The next two cases come first, because later cases create an internal communicator of all ranks,
// and these cases have fewer ranks.
TEST_CASE("no memory is shared where the settings say so") {
  if (world_size() < 3) return;
  const owned first_two = part_of_world(world_rank() < 2 ? 0 : MPI_UNDEFINED);
  if (!first_two) return;
  const test::records log;
  mpi::configure(*first_two, "shared_memory", "0");
  REQUIRE(mpi::start_tuning(*first_two) == MPI_SUCCESS);
  CHECK(adds_up(*first_two, 3));
  CHECK(mpi::last_arm(*first_two) == "native");
  CHECK(log.texts.empty());
}

TEST_CASE("without room no memory is shared on any rank, and a record says why") {
  if (world_size() < 4) return;
  const owned next_two = part_of_world(world_rank() == 2 || world_rank() == 3 ? 0 : MPI_UNDEFINED);
  if (!next_two) return;
  const test::records log;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const bool has_no_room = next_two->rank() == 1;
  if (has_no_room) {
    const rlimit least{4096, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &least);
  }
  CHECK(mpi::start_tuning(*next_two) == MPI_SUCCESS);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(adds_up(*next_two, 3));
  CHECK(mpi::last_arm(*next_two) == "native");
  CHECK(log.texts.size() == (has_no_room ? 1 : 0));
  CHECK(log.any_has("collectives do not use shared memory: ulimit -f") == has_no_room);
}

TEST_CASE("the first communicators share memory, later ones do once there is a slot again") {
  std::vector<owned> live;
  const auto add = [&] {
    live.push_back(copy_of_world());
    REQUIRE(mpi::start_tuning(*live.back()) == MPI_SUCCESS);
  };
  const auto in_memory = [&] {
    int count = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      CHECK(adds_up(*live[i], std::int64_t(i)));
      count += ran_in_memory(*live[i]) ? 1 : 0;
    }
    return count;
  };
  for (int i = 0; i < node_memory::most_slots + 2; ++i) add();
  const int most = world_size() > 1 ? node_memory::most_slots : 0;
  CHECK(in_memory() == most);
  for (int round = 0; round < 3; ++round) {
    live.erase(live.begin() + round, live.begin() + round + 4);
    for (int i = 0; i < 4; ++i) add();
    CHECK(in_memory() == most);
  }
}

TEST_CASE("what uses no shared memory takes no slot of it") {
  if (world_size() < 2) return;
  std::vector<std::unique_ptr<function_set<void()>>> sets;
  const owned world = copy_of_world();
  for (int i = 0; i < 2 * node_memory::most_slots; ++i) {
    sets.push_back(std::make_unique<function_set<void()>>("set" + std::to_string(i), *world));
    sets.back()->add("first", [] {});
    sets.back()->add("second", [] {});
    (*sets.back())();
  }
  REQUIRE(mpi::start_tuning(*world) == MPI_SUCCESS);
  CHECK(adds_up(*world, 1));
  CHECK(ran_in_memory(*world));
}

TEST_CASE("an idle communicator gives its slot up, and asks for one when it calls again") {
  int threads = MPI_THREAD_SINGLE;
  MPI_Query_thread(&threads);
  if (world_size() < 2 || threads == MPI_THREAD_MULTIPLE) return;
  test::stopped_clock clock;
  std::vector<owned> live;
  const auto add = [&] {
    live.push_back(copy_of_world());
    REQUIRE(mpi::start_tuning(*live.back()) == MPI_SUCCESS);
    CHECK(adds_up(*live.back(), 5));
    return ran_in_memory(*live.back());
  };
  const auto calls = [&](std::size_t i) {
    CHECK(adds_up(*live[i], 3));
    return ran_in_memory(*live[i]);
  };
  // After how many calls learning chooses shared memory, or `most`. Calls take long enough by the
  // clock for their times to be known soon.
  const auto calls_until_in_memory = [&](const communicator& comm, int most) {
    int made = 0;
    while (made < most) {
      int sum = -1;
      clock.pass_in(1e-3, [&] {
        CHECK(mpi::scan(&made, &sum, 1, MPI_INT, MPI_SUM, comm, collect(policy("round_robin"))) ==
              MPI_SUCCESS);
      });
      CHECK(sum == made * (comm.rank() + 1));
      ++made;
      if (ran_in_memory(comm)) break;
    }
    return made;
  };
  for (int i = 0; i < node_memory::most_slots; ++i) CHECK(add());
  CHECK(!add());  // no slot is known to be idle
  CHECK(calls(0));
  CHECK(add());      // the second communicator has made no call in the meantime
  CHECK(!calls(1));  // and finds no slot for now
  CHECK(calls_until_in_memory(*live[1], 100) == 100);
  for (int i = 0; i < 1100; ++i) CHECK(adds_up(*live[1], i));
  CHECK(calls(1));  // another communicator was idle all the time
  CHECK(calls_until_in_memory(*live[1], 10000) < 10000);
  live.erase(live.begin() + 2, live.end());
  CHECK(add());
}

TEST_CASE("threads whose communicators come and go in different orders share no data") {
  int threads = MPI_THREAD_SINGLE;
  MPI_Query_thread(&threads);
  if (world_size() < 2 || threads != MPI_THREAD_MULTIPLE) return;
  // Few slots are left, so that all communicators want the same slots.
  std::vector<owned> live;
  for (int i = 0; i + 1 < node_memory::most_slots; ++i) {
    live.push_back(copy_of_world());
    REQUIRE(mpi::start_tuning(*live.back()) == MPI_SUCCESS);
  }
  constexpr int num_threads = 3;
  std::vector<owned> parents;
  for (int t = 0; t < num_threads; ++t) parents.push_back(copy_of_world());
  std::atomic<int> wrong{0};
  std::vector<std::thread> running;
  for (int t = 0; t < num_threads; ++t)
    running.emplace_back([&, t] {
      for (int round = 0; round < 40; ++round) {
        MPI_Comm made = MPI_COMM_NULL;
        MPI_Comm_dup(*parents[std::size_t(t)], &made);
        const communicator here(made);
        mpi::start_tuning(here);
        for (int k = 0; k < 3; ++k)
          if (!adds_up(here, 1000 * t + 10 * round + k)) ++wrong;
      }
    });
  for (std::thread& t : running) t.join();
  CHECK(wrong == 0);
}

TEST_CASE(
    "slots go from communicators of some ranks to those of others, whoever is late to leave") {
  const int p = world_size();
  if (p < 2) return;
  const owned world = copy_of_world();
  REQUIRE(mpi::start_tuning(*world) == MPI_SUCCESS);
  for (int round = 0; round < 60; ++round) {
    // Rows of some ranks, all at once; some ranks are in no row.
    const int width = 1 + round % p;
    const int color =
        (world_rank() + round) % (p + 1) == 0 ? MPI_UNDEFINED : (world_rank() + round / 3) / width;
    const owned row = part_of_world(color);
    if (!row) continue;
    REQUIRE(mpi::start_tuning(*row) == MPI_SUCCESS);
    const int calls = round % 5;
    for (int k = 0; k < calls; ++k) CHECK(adds_up(*row, round * 10 + k));
    // The root leaves at once, while other ranks still read.
    std::vector<int> message(3000, row->rank() == 0 ? round : -1);
    CHECK(mpi::broadcast(message.data(), int(message.size()), MPI_INT, 0, *row,
                         collect(use("shared_flat"))) == MPI_SUCCESS);
    CHECK(std::ranges::all_of(message, [&](int x) { return x == round; }));
    const bool may_share = row->size() > 1 && row->size() <= 8;
    if (may_share) CHECK(ran_in_memory(*row));
  }
  CHECK(adds_up(*world, 1));
  CHECK(ran_in_memory(*world));
}

TEST_CASE("a large message goes on while its sender waits in shared memory") {
  const owned world = copy_of_world();
  const int p = world->size(), rank = world->rank();
  if (p < 2) return;
  REQUIRE(mpi::start_tuning(*world) == MPI_SUCCESS);
  const bool copies = test::single_copies(*world);
  test::large_message message(*world);
  const auto play = [&](collective op, const std::string& name) {
    for (const int root : {0, p - 1}) {
      CAPTURE(name_of(op), name, root);
      std::vector<std::int64_t> in(std::size_t(p), rank + 1), out(std::size_t(p), -1);
      std::vector<int> counts(std::size_t(p), 1), places(std::size_t(p), 0);
      for (int i = 0; i < p; ++i) places[std::size_t(i)] = i;
      const call_side given{.memory = in.data(), .count = 1, .type = MPI_INT64_T};
      call_side taken{.memory = out.data(), .count = 1, .type = MPI_INT64_T};
      if (op == collective::all_gatherv || op == collective::reduce_scatter) {
        taken.counts = counts.data();
        taken.displacements = places.data();
      }
      const call c{.op = op,
                   .send = given,
                   .receive = taken,
                   .operation = MPI_SUM,
                   .root = root,
                   .comm = *world};
      const auto collective_call = [&] {
        CHECK(call_railpass(c, collect(use(name))) == MPI_SUCCESS);
        CHECK(mpi::last_arm(*world) == name);
      };
      message.goes_on_during(collective_call);
    }
  };
  for (const collective op : all_collectives) {
    if (find_algorithm(op, "shared_flat")) play(op, "shared_flat");
    // A rank that opens its memory waits for the other ranks.
    const algorithm* const single = find_algorithm(op, "single_copy");
    if (!single || !copies || p > single->needs.max_ranks ||
        describe(op).lengths == block_lengths::of_pair)
      continue;
    play(op, "single_copy");
    if (single->num_parameters() > 0) play(op, "single_copy+giver_writes=1");
  }
}

// The last test: afterwards no scan is in shared_flat.
TEST_CASE("an arm that no call can run any more has no times, and no policy waits for them") {
  const owned world = copy_of_world();
  if (world->size() < 2) return;
  test::stopped_clock clock;
  MPI_Comm_set_name(*world, "excluding");
  REQUIRE(mpi::start_tuning(*world) == MPI_SUCCESS);
  for (int call = 0; call < 300; ++call) {
    if (call == 1)
      process::get()->exclude({.what = find_algorithm(collective::scan, "shared_flat")});
    int sum = -1;
    clock.pass_in(1e-3, [&] {
      CHECK(mpi::scan(&call, &sum, 1, MPI_INT, MPI_SUM, *world, collect(policy("round_robin"))) ==
            MPI_SUCCESS);
    });
    CHECK(sum == call * (world->rank() + 1));
  }
  for (const auto& context : process::get()->statistics().contexts) {
    if (context.communicator != "excluding") continue;
    for (const select::arm_statistics& a : context.arms) {
      CAPTURE(a.arm);
      if (a.arm == "shared_flat")
        CHECK(a.times.samples < 3);
      else
        CHECK(a.times.samples >= 3);
    }
  }
}
