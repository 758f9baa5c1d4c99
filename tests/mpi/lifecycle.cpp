// SPDX-License-Identifier: BSL-1.0
//
// What happens around the calls: communicators that come and go, ranks that disagree, wrong
// arguments, calls that have nothing to tune.
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

using namespace railpass;

namespace {

struct records {
  std::vector<std::string> texts;
  records() {
    set_log_handler(
        [](const char* text, void* self) { static_cast<records*>(self)->texts.emplace_back(text); },
        this);
  }
  ~records() { set_log_handler(nullptr); }
};

int sum_of_ranks(MPI_Comm comm) {
  int rank = 0, sum = -1;
  MPI_Comm_rank(comm, &rank);
  mpi::all_reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

}  // namespace

TEST_CASE("communicators are split, duplicated and freed in the middle of tuning") {
  const communicator world = communicator::duplicate_of_world();
  mpi::configure(world, "policy", "round_robin");  // merges all the time
  for (int generation = 0; generation < 12; ++generation) {
    MPI_Comm half = MPI_COMM_NULL, copy = MPI_COMM_NULL;
    MPI_Comm_split(world, world.rank() % 2, -world.rank(), &half);
    const communicator part(half);
    int expected = 0;
    for (int r = 0; r < part.size(); ++r) expected += r;
    for (int call = 0; call < 9 + generation; ++call) CHECK(sum_of_ranks(part) == expected);
    MPI_Comm_dup(part, &copy);  // must not inherit what is learnt
    const communicator second(copy);
    CHECK(mpi::last_arm(second) == (second.size() > 1 ? "" : "native"));
    for (int call = 0; call < generation; ++call) CHECK(sum_of_ranks(second) == expected);
    CHECK(sum_of_ranks(world) == world.size() * (world.size() - 1) / 2);
  }
}

TEST_CASE("empty messages, one rank and inter-communicators go to the MPI library") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  CHECK(mpi::broadcast(nullptr, 0, MPI_INT, 0, world) == MPI_SUCCESS);
  CHECK(mpi::all_reduce(nullptr, nullptr, 0, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
  int value = 7, result = 0;
  for (int call = 0; call < 20; ++call) {
    CHECK(mpi::all_reduce(&value, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(result == 7);
  }
  if (world.size() < 2) return;
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  const int side = world.rank() % 2;
  MPI_Comm_split(world, side, 0, &half);
  const communicator part(half);
  MPI_Intercomm_create(part, 0, world, 1 - side, 5, &inter);
  const communicator bridge(inter);
  int others = 0;
  MPI_Comm_remote_size(bridge, &others);
  const int one = 1;
  for (int call = 0; call < 20; ++call) {
    int sum = 0;
    CHECK(mpi::all_reduce(&one, &sum, 1, MPI_INT, MPI_SUM, bridge) == MPI_SUCCESS);
    CHECK(sum == others);
  }
}

TEST_CASE("wrong arguments give the MPI library's errors") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  int value = 0, result = 0;
  const auto class_of = [](int code) {
    int error_class = 0;
    MPI_Error_class(code, &error_class);
    return error_class;
  };
  CHECK(class_of(mpi::broadcast(&value, 1, MPI_INT, world.size(), world)) == MPI_ERR_ROOT);
  CHECK(class_of(mpi::broadcast(&value, 1, MPI_INT, -1, world)) == MPI_ERR_ROOT);
  CHECK(class_of(mpi::broadcast(&value, -1, MPI_INT, 0, world)) == MPI_ERR_COUNT);
  CHECK(class_of(mpi::broadcast(&value, 1, MPI_DATATYPE_NULL, 0, world)) == MPI_ERR_TYPE);
  CHECK(class_of(mpi::all_reduce(&value, &result, 1, MPI_INT, MPI_OP_NULL, world)) == MPI_ERR_OP);
  CHECK(sum_of_ranks(world) == world.size() * (world.size() - 1) / 2);
}

TEST_CASE("wrong options are recorded once and the call runs natively") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const records log;
  for (int call = 0; call < 3; ++call) {
    int value = world.rank() == 0 ? 5 : 0;
    CHECK(mpi::broadcast(&value, 1, MPI_INT, 0, world, collect(use("teleport"))) == MPI_SUCCESS);
    CHECK(value == 5);
    CHECK(mpi::broadcast(&value, 1, MPI_INT, 0, world, collect(policy("clairvoyant"))) ==
          MPI_SUCCESS);
  }
  if (world.size() < 2) return;
  REQUIRE(log.texts.size() == 2);
  CHECK(log.texts[0].find("there is no algorithm 'teleport'") != std::string::npos);
  CHECK(log.texts[1].find("clairvoyant") != std::string::npos);
}

TEST_CASE("ranks whose settings differ stay native, with one record") {
  const communicator world = communicator::duplicate_of_world();
  const records log;
  mpi::configure(world, "min_bytes", world.rank() == 0 ? "1KiB" : "0");
  for (int call = 0; call < 30; ++call)
    CHECK(sum_of_ranks(world) == world.size() * (world.size() - 1) / 2);
  CHECK(mpi::last_arm(world) == "native");
  CHECK(log.texts.size() == (world.size() > 1 ? 1 : 0));
}

TEST_CASE("with strict=on, settings that differ are an error on all ranks") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const records log;
  mpi::configure(world, "strict", "on");
  mpi::configure(world, "seed", std::to_string(world.rank()));
  CHECK(mpi::start_tuning(world) != MPI_SUCCESS);
}

TEST_CASE("one rank that is told not to tune keeps all of them native") {
  const communicator world = communicator::duplicate_of_world();
  mpi::configure(world, "enable", "off");
  for (int call = 0; call < 20; ++call) sum_of_ranks(world);
  CHECK(mpi::last_arm(world) == "native");
}

TEST_CASE("a rank that misses a call is found out, and results stay right") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const records log;
  mpi::configure(world, "policy", "native");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  // Legal MPI, but a call that only some ranks make through railpass: both go the native way here.
  int value = 1;
  if (world.rank() == 0)
    MPI_Bcast(&value, 1, MPI_INT, 0, world);
  else
    mpi::broadcast(&value, 1, MPI_INT, 0, world, collect(use("native")));
  for (int call = 0; call < 40; ++call)
    CHECK(sum_of_ranks(world) == world.size() * (world.size() - 1) / 2);
}

TEST_CASE("configure refuses what is no setting, no value, or too late") {
  const communicator world = communicator::duplicate_of_world();
  CHECK_THROWS_AS(mpi::configure(world, "colour", "red"), error);
  CHECK_THROWS_AS(mpi::configure(world, "seed", "minus one"), error);
  CHECK_THROWS_AS(mpi::configure(MPI_COMM_NULL, "seed", "1"), error);
  if (world.size() < 2) return;
  mpi::start_tuning(world);
  CHECK_THROWS_AS(mpi::configure(world, "seed", "1"), error);
}

TEST_CASE("a profile that cannot be used is recorded once, and tuning goes on without") {
  const records log;
  for (int generation = 0; generation < 2; ++generation) {
    const communicator world = communicator::duplicate_of_world();
    mpi::configure(world, "profile", "no_such_profile.json");
    REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
    for (int call = 0; call < 5; ++call)
      CHECK(sum_of_ranks(world) == world.size() * (world.size() - 1) / 2);
    const bool leads = world.size() > 1 && world.rank() == 0;
    REQUIRE(log.texts.size() == (leads ? 1 : 0));
    if (leads) CHECK(log.texts[0].find("no_such_profile.json") != std::string::npos);
  }
}

TEST_CASE("a setting that the policy refuses is recorded by rank 0, and no rank hangs") {
  const communicator world = communicator::duplicate_of_world();
  const records log;
  mpi::configure(world, "policy", "pass");
  mpi::configure(world, "pass_exponent", "0");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  for (int call = 0; call < 20; ++call)
    CHECK(sum_of_ranks(world) == world.size() * (world.size() - 1) / 2);
  const bool leads = world.size() > 1 && world.rank() == 0;
  CHECK(log.texts.size() == (leads ? 1 : 0));
  CHECK(mpi::last_arm(world) == "native");
}

TEST_CASE("reproducible: reductions take a fixed algorithm, however often they are called") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  mpi::configure(world, "reproducible", "on");
  mpi::start_tuning(world);
  for (const int count : {16, 1 << 15}) {
    std::vector<double> mine(std::size_t(count), 0.1 * world.rank()), sum(mine.size());
    for (int call = 0; call < 10; ++call) {
      mpi::all_reduce(mine.data(), sum.data(), count, MPI_DOUBLE, MPI_SUM, world);
      CHECK(mpi::last_arm(world) ==
            (count == 16 ? "recursive_doubling" : "reduce_scatter_allgather"));
    }
  }
}

TEST_CASE("verify: the same results, and nothing to record") {
  const communicator world = communicator::duplicate_of_world();
  const records log;
  mpi::configure(world, "verify", "on");
  mpi::configure(world, "policy", "round_robin");
  mpi::start_tuning(world);
  for (int call = 0; call < 60; ++call) {
    std::vector<double> data(1000, world.rank() + 1.0);
    mpi::all_reduce(MPI_IN_PLACE, data.data(), 1000, MPI_DOUBLE, MPI_SUM, world);
    CHECK(data[999] == world.size() * (world.size() + 1) / 2.0);
    mpi::broadcast(data.data(), 1000, MPI_DOUBLE, call % world.size(), world);
  }
  CHECK(log.texts.empty());
}

TEST_CASE("verify: a result that depends on who computes it is recorded") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const records log;
  mpi::configure(world, "verify", "on");
  mpi::start_tuning(world);
  MPI_Op op = MPI_OP_NULL;  // not associative: the order of the additions shows
  MPI_Op_create(
      [](void* left, void* right, int* length, MPI_Datatype*) {
        for (int i = 0; i < *length; ++i)
          static_cast<int*>(right)[i] =
              3 * static_cast<int*>(left)[i] - 2 * static_cast<int*>(right)[i];
      },
      1, &op);
  int differs = 0;
  for (const char* arm : {"ring", "recursive_doubling", "allgather_reduce", "reduce_broadcast"}) {
    std::vector<int> mine(64, world.rank() + 1), result(64);
    mpi::all_reduce(mine.data(), result.data(), 64, MPI_INT, op, world, collect(use(arm)));
    differs = int(log.texts.size());
  }
  MPI_Op_free(&op);
  if (world.size() > 2) CHECK(differs > 0);
}

TEST_CASE("a dump can be written at any time, and only where it can be") {
  const communicator world = communicator::duplicate_of_world();
  mpi::start_tuning(world);
  for (int call = 0; call < 20; ++call) sum_of_ranks(world);
  CHECK_THROWS_AS(mpi::dump_statistics("/nonexistent/folder/dump.json"), error);
  if (world.rank() != 0) return;
  const std::string path = "lifecycle_dump.np" + std::to_string(world.size()) + ".json";
  mpi::dump_statistics(path);
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (world.size() > 1) CHECK(text.find("\"all_reduce\"") != std::string::npos);
  std::remove(path.c_str());
}

TEST_CASE("calls on several communicators from several threads do not disturb each other") {
  int provided = 0;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    WARN("MPI_THREAD_MULTIPLE is not provided: nothing to test");
    return;
  }
  const communicator first = communicator::duplicate_of_world();
  const communicator second = communicator::duplicate_of_world();
  std::array<int, 2> wrong{};
  const auto work = [](const communicator& comm, int& failures) {
    for (int call = 0; call < 100; ++call)
      if (sum_of_ranks(comm) != comm.size() * (comm.size() - 1) / 2) ++failures;
  };
  std::thread other([&] { work(second, wrong[1]); });
  work(first, wrong[0]);
  other.join();
  CHECK(wrong == std::array<int, 2>{});
}
