// SPDX-License-Identifier: BSL-1.0
//
// What MPI is asked for when a communicator begins to be tuned: as programs make many of them, each
// collective counts.
#include "lib/session/process.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <vector>

using namespace railpass;

namespace {

using calls = std::vector<std::string>;

calls asked;              // collective calls of librailpass
double last_asked_s = 0;  // when a reduction was begun
int num_hosts = 1;
bool none_left = false;  // no communicator

template <class Function, class... Arguments>
int pass_on(const char* name, Function*, Arguments... arguments) {
  asked.emplace_back(name);
  if (asked.back() == "PMPI_Allreduce") last_asked_s = steady_clock_s();
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name))(arguments...);
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
COUNTED(PMPI_Gather,
        (const void* in, int count, MPI_Datatype type, void* out, int out_count,
         MPI_Datatype out_type, int root, MPI_Comm comm),
        in, count, type, out, out_count, out_type, root, comm)
COUNTED(PMPI_Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm), data,
        count, type, root, comm)
COUNTED(PMPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), comm, color, key,
        made)
#undef COUNTED

extern "C" int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  return none_left ? MPI_ERR_OTHER
                   : pass_on("PMPI_Comm_create", &PMPI_Comm_create, comm, group, made);
}

// As if rank r were on host r modulo that many.
extern "C" int PMPI_Get_processor_name(char* name, int* length) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  *length = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "host%d", rank % num_hosts);
  return MPI_SUCCESS;
}

TEST_CASE("a communicator begins to be tuned with one reduction and one new communicator") {
  const communicator world = communicator::duplicate_of_world();
  asked.clear();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  CHECK(asked == (world.size() > 1 ? calls{"PMPI_Allreduce", "PMPI_Comm_create"} : calls{}));

  asked.clear();
  int value = world.rank() == 0 ? 7 : 0;
  REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, world) == MPI_SUCCESS);
  CHECK(value == 7);
  const std::string arm(mpi::last_arm(world));
  CAPTURE(arm);
  CHECK(asked == calls(std::size_t((world.size() > 1) + (arm == "native")), "PMPI_Bcast"));
}

TEST_CASE("the ranks agree at the 8th call, and begin then if that pays on all of them") {
  const auto asked_for = [](const std::string& name) { return std::ranges::count(asked, name); };
  const auto broadcasts = [](MPI_Comm comm, int calls) {
    for (int i = 0; i < calls; ++i) {
      int value = 7;
      REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, comm) == MPI_SUCCESS);
    }
  };
  const communicator of_long_calls = communicator::duplicate_of_world();
  const int begins = of_long_calls.size() > 1 ? 1 : 0;
  asked.clear();
  broadcasts(of_long_calls, 7);
  CHECK(asked_for("PMPI_Allreduce") == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(25));
  broadcasts(of_long_calls, 1);
  CHECK(asked_for("PMPI_Allreduce") == begins);
  CHECK(asked_for("PMPI_Comm_create") == begins);

  const communicator particular = communicator::duplicate_of_world();
  mpi::configure(particular, "policy", "round_robin");
  asked.clear();
  broadcasts(particular, 8);
  CHECK(asked_for("PMPI_Comm_create") == begins);

  // Other work may hold up short calls, too; not every time.
  bool were_short = begins == 0;
  for (int i = 0; i < 200 && !were_short; ++i) {
    const communicator of_short_calls = communicator::duplicate_of_world();
    asked.clear();
    const double began_s = steady_clock_s();
    broadcasts(of_short_calls, 8);
    CHECK(asked_for("PMPI_Allreduce") == 1);
    int is_short = last_asked_s - began_s < 6 * 20e-6 ? 1 : 0, short_somewhere = 0;
    MPI_Allreduce(&is_short, &short_somewhere, 1, MPI_INT, MPI_MAX, of_short_calls);
    were_short = short_somewhere == 1;
    if (were_short) CHECK(asked_for("PMPI_Comm_create") == 0);
  }
  CHECK(were_short);
}

TEST_CASE("the reduction says who shares a host, too") {
  num_hosts = 2;
  const communicator world = communicator::duplicate_of_world();
  MPI_Comm_set_name(world, "on two hosts");
  asked.clear();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  num_hosts = 1;
  if (world.size() < 2) return;
  CHECK(asked == calls{"PMPI_Allreduce", "PMPI_Comm_create"});
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
    CHECK(log.texts[0].find("MPI makes none for its messages") != std::string::npos);
}
