// SPDX-License-Identifier: BSL-1.0
//
// What MPI is asked for when a communicator begins to be tuned: as programs make many of them, each
// collective counts.
#include "lib/group/base.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "railpass/rails.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"
#include "support/stopped_clock.hpp"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

using calls = std::vector<std::string>;

calls asked;             // collective calls of librailpass
bool none_left = false;  // no communicator

template <class Function, class... Arguments>
int pass_on(const char* name, Function*, Arguments... arguments) {
  asked.emplace_back(name);
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name))(arguments...);
}

// What the ranks are asked to agree. Where several threads may do so at once, all have to confirm
// the lane.
calls agreement(bool several) {
  int threads = MPI_THREAD_SINGLE;
  MPI_Query_thread(&threads);
  return calls(several ? (threads == MPI_THREAD_MULTIPLE ? 2 : 1) : 0, "PMPI_Allreduce");
}

}  // namespace

// Called instead of the MPI library's.
#define COUNTED(name, parameters, ...) \
  extern "C" int name parameters { return pass_on(#name, &name, __VA_ARGS__); }
COUNTED(PMPI_Allreduce,
        (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), in,
        out, count, type, op, comm)
COUNTED(PMPI_Allgather,
        (const void* in, int count, MPI_Datatype type, void* out, int out_count,
         MPI_Datatype out_type, MPI_Comm comm),
        in, count, type, out, out_count, out_type, comm)
COUNTED(PMPI_Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm), data,
        count, type, root, comm)
COUNTED(PMPI_Comm_dup, (MPI_Comm comm, MPI_Comm* made), comm, made)
COUNTED(PMPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), comm, color, key,
        made)
#undef COUNTED

extern "C" int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  return none_left ? MPI_ERR_OTHER
                   : pass_on("PMPI_Comm_create", &PMPI_Comm_create, comm, group, made);
}

// As if rank r were on host r modulo 2.
extern "C" int PMPI_Get_processor_name(char* name, int* length) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  *length = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "host%d", rank % 2);
  return MPI_SUCCESS;
}

// Before any other: it needs ranks that have no base yet.
TEST_CASE("where MPI has no communicator left all ranks stay native, and say why") {
  const communicator world = communicator::duplicate_of_world();
  const test::records log;
  none_left = true;
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  none_left = false;
  for (int call = 0; call < 3; ++call) {
    int value = world.rank() == 0 ? 7 : 0;
    REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, world) == MPI_SUCCESS);
    CHECK(value == 7);
    CHECK(mpi::last_arm(world) == "native");
  }
  REQUIRE(log.texts.size() == (world.size() > 1 ? 1 : 0));
  if (world.size() > 1)
    CHECK(log.texts[0].find("MPI cannot create an internal communicator") != std::string::npos);
}

TEST_CASE("MPI makes one communicator for some ranks, and none for later ones of these") {
  const communicator world = communicator::duplicate_of_world();
  asked.clear();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const bool several = world.size() > 1;
  calls expected = agreement(several);
  if (several)
    expected.insert(expected.begin() + 1, {"PMPI_Comm_create", "PMPI_Allgather", "PMPI_Allreduce"});
  // Where two ranks have the same host, all share memory.
  if (world.size() > 2) expected.insert(expected.begin() + 4, {"PMPI_Allreduce", "PMPI_Allreduce"});
  CHECK(asked == expected);

  MPI_Comm reversed = MPI_COMM_NULL, half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world.rank(), &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, world.rank() % 2, world.rank(), &half);
  for (const MPI_Comm made : {reversed, half}) {
    const communicator later(made);
    asked.clear();
    REQUIRE(mpi::start_tuning(later) == MPI_SUCCESS);
    CHECK(asked == agreement(later.size() > 1));
    // A context's first plan takes no collective of MPI's.
    asked.clear();
    int value = later.rank() == 0 ? 7 : 0;
    REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, later) == MPI_SUCCESS);
    CHECK(value == 7);
    const std::string arm(mpi::last_arm(later));
    CAPTURE(arm);
    CHECK(asked == calls(arm == "native" ? 1 : 0, "PMPI_Bcast"));
  }
}

TEST_CASE("rails of collectives take no communicator of MPI's, whoever makes some elsewhere") {
  const communicator base = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(base) == MPI_SUCCESS);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Request copying = MPI_REQUEST_NULL;
  MPI_Comm_idup(MPI_COMM_WORLD, &copy, &copying);
  for (int round = 0; round < 2; ++round) {
    const communicator world = communicator::duplicate_of_world();
    mpi::configure(world, "rails", "mpi,127.0.0.2");
    mpi::configure(world, "use", "broadcast:binomial");
    asked.clear();
    int value = 0;
    for (int call = 0; call < 20; ++call) {
      value = world.rank() == 0 ? call : -1;
      REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, world) == MPI_SUCCESS);
      CHECK(value == call);
    }
    for (const char* maker : {"PMPI_Comm_create", "PMPI_Comm_dup", "PMPI_Comm_split"})
      CHECK(std::ranges::count(asked, maker) == 0);
    if (world.size() > 1) CHECK(mpi::rails_to(0, world).size() == 2);
  }
  MPI_Wait(&copying, MPI_STATUS_IGNORE);
  const communicator freed(copy);
}

TEST_CASE("memory is shared by the ranks of a host only") {
  const communicator world = communicator::duplicate_of_world();
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank() % 2, world.rank(), &half);
  const communicator host(half);
  for (const communicator* comm : {&world, &host}) {
    REQUIRE(mpi::start_tuning(*comm) == MPI_SUCCESS);
    int sum = 0;
    const int one = 1;
    CHECK(mpi::all_reduce(&one, &sum, 1, MPI_INT, MPI_SUM, *comm, collect(use("shared_flat"))) ==
          MPI_SUCCESS);
    CHECK(sum == comm->size());
    const bool shares = comm == &host && host.size() > 1;
    if (comm->size() > 1) CHECK(mpi::last_arm(*comm) == (shares ? "shared_flat" : "native"));
  }
}

TEST_CASE("more communicators than lanes: the rest are native, and freed ones make room") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const test::records log;
  const auto is_tuned = [](MPI_Comm comm) {
    int value = 1, sum = 0;
    REQUIRE(mpi::start_tuning(comm) == MPI_SUCCESS);
    REQUIRE(mpi::all_reduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm,
                            collect(use("recursive_doubling"))) == MPI_SUCCESS);
    return mpi::last_arm(comm) == "recursive_doubling";
  };
  REQUIRE(is_tuned(world));  // so that there is a base
  // On one rank all lanes but some are taken, each rank knows only its own.
  constexpr int some = 3;
  bases& all = bases::of_process();
  const base_mapping mapping = all.find(world);
  REQUIRE(mapping.of);
  std::vector<int> taken;
  if (world.rank() == world.size() - 1)
    for (int lane = 0, left = some; lane < base::num_lanes; ++lane) {
      if (!all.take(*mapping.of, lane)) continue;
      if (left-- > 0)
        all.give_back(*mapping.of, lane);
      else
        taken.push_back(lane);
    }
  {
    std::vector<std::unique_ptr<communicator>> live;
    const auto duplicate = [] {
      MPI_Comm copy = MPI_COMM_NULL;
      MPI_Comm_dup(MPI_COMM_WORLD, &copy);
      return std::make_unique<communicator>(copy);
    };
    for (int i = 0; i < some; ++i) CHECK(is_tuned(*live.emplace_back(duplicate())));
    CHECK(log.texts.empty());
    CHECK(!is_tuned(*duplicate()));
    CHECK(log.any_has("already tunes 1024 communicators"));
    for (int i = 0; i < 20; ++i) {
      live[std::size_t(i % some)] = nullptr;
      live[std::size_t(i % some)] = duplicate();
      CHECK(is_tuned(*live[std::size_t(i % some)]));
    }
  }
  for (const int lane : taken) all.give_back(*mapping.of, lane);
}

TEST_CASE("the ranks agree at the 8th call, and begin then if that pays on all of them") {
  process::get()->account().earn(1e9);  // the tests before this one have spent much
  const auto asked_for = [](const std::string& name) { return std::ranges::count(asked, name); };
  const auto broadcasts = [](MPI_Comm comm, int calls) {
    for (int i = 0; i < calls; ++i) {
      int value = 7;
      REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, comm) == MPI_SUCCESS);
    }
  };
  const auto is_tuned = [](MPI_Comm comm) {
    try {
      mpi::configure(comm, "seed", "1");
    } catch (const error&) {  // too late
      return true;
    }
    return false;
  };
  test::stopped_clock clock;
  const communicator of_long_calls = communicator::duplicate_of_world();
  const int begins = of_long_calls.size() > 1 ? 1 : 0;
  asked.clear();
  broadcasts(of_long_calls, 7);
  CHECK(asked_for("PMPI_Allreduce") == begins);  // whether native is excluded
  clock.pass(25e-3);
  broadcasts(of_long_calls, 1);
  CHECK(asked_for("PMPI_Allreduce") == begins + std::ptrdiff_t(agreement(begins == 1).size()));
  CHECK(is_tuned(of_long_calls) == (begins == 1));

  const communicator particular = communicator::duplicate_of_world();
  mpi::configure(particular, "policy", "round_robin");
  asked.clear();
  broadcasts(particular, 8);
  CHECK(is_tuned(particular) == (begins == 1));

  const communicator of_short_calls = communicator::duplicate_of_world();
  asked.clear();
  broadcasts(of_short_calls, 8);
  CHECK(asked_for("PMPI_Allreduce") == 2 * begins);
  CHECK(!is_tuned(of_short_calls));
}

TEST_CASE("who shares a host is known of all communicators") {
  const communicator world = communicator::duplicate_of_world();
  MPI_Comm_set_name(world, "on two hosts");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  if (world.size() < 2) return;
  int value = 0;
  REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, world) == MPI_SUCCESS);
  const auto contexts = process::get()->statistics().contexts;
  if (world.rank() > 0) return;
  const auto here =
      std::ranges::find(contexts, "on two hosts", &select::context_statistics::communicator);
  REQUIRE(here != contexts.end());
  CHECK(here->ranks_per_node == (world.size() + 1) / 2);
  CHECK(process::get()->statistics().machine_id.num_hosts == 2);
}
