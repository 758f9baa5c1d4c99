// SPDX-License-Identifier: BSL-1.0
//
// What happens around the calls: communicators that come and go, ranks that disagree, wrong
// arguments, calls that have nothing to tune.
#include "collectives/registry.hpp"
#include "lib/files/files.hpp"
#include "lib/runtime/process.hpp"
#include "lib/tuner/kept_call.hpp"
#include "railpass/mpi.hpp"
#include "railpass/select/belief/prior.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"
#include "support/scratch_directory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::records;

namespace {

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

TEST_CASE("what a merge under way brings is not lost when the communicator is freed") {
  int gained = 0;
  constexpr int generations = 12;
  for (int generation = 0; generation < generations; ++generation) {
    const std::string name = "generation " + std::to_string(generation);
    const auto samples = [&] {
      std::int64_t sum = 0;
      for (const auto& context : process::get()->statistics().contexts)
        if (context.communicator == name)
          for (const auto& arm : context.arms) sum += arm.times.samples;
      return sum;
    };
    std::int64_t before = 0;
    {
      const communicator comm = communicator::duplicate_of_world();
      MPI_Comm_set_name(comm, name.c_str());
      mpi::configure(comm, "policy", "round_robin");  // merges all the time
      mpi::start_tuning(comm);
      for (int call = 0; call <= generation; ++call) sum_of_ranks(comm);
      before = samples();
    }
    const std::int64_t after = samples();
    CHECK(after >= before);
    if (after > before) ++gained;
  }
  const communicator world = communicator::duplicate_of_world();
  // The first merge is under way after the second call.
  if (world.size() > 1 && world.rank() == 0) CHECK(gained > 0);
  if (world.rank() != 0) CHECK(gained == 0);
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

TEST_CASE("a profile of one host serves communicators on one, in whatever order they come") {
  const communicator world = communicator::duplicate_of_world();
  process& here = *process::get();
  const scratch_directory folder;
  for (const bool several_first : {false, true}) {
    const std::string path = folder.file(several_first ? "first.json" : "second.json");
    std::ofstream(path) << files::to_json(
        profile{.machine_id = {.num_hosts = 1}, .machine = select::generic_machine()});
    if (several_first) CHECK(here.read_profile(path, 2, "") == nullptr);
    CHECK(here.read_profile(path, 1, "") != nullptr);
    CHECK(here.read_profile(path, 2, "") == nullptr);
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

TEST_CASE("sums of Fortran's types that name their size are tuned, too") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  for (const MPI_Datatype type : {MPI_REAL4, MPI_REAL8, MPI_INTEGER4, MPI_INTEGER8, MPI_COMPLEX8,
                                  MPI_COMPLEX16, MPI_DOUBLE_COMPLEX}) {
    std::array<double, 2> mine{}, sum{1, 1};
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    REQUIRE(bytes > 0);
    REQUIRE(mpi::all_reduce(mine.data(), sum.data(), 1, type, MPI_SUM, world,
                            collect(use("recursive_doubling"))) == MPI_SUCCESS);
    CHECK(mpi::last_arm(world) == "recursive_doubling");
    CHECK(std::memcmp(mine.data(), sum.data(), std::size_t(bytes)) == 0);
  }
}

TEST_CASE("where a dump is asked for, calls of a pinned arm are timed, and that arm alone runs") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const std::string arm = GENERATE("ring", "double_binary_tree+segment_bytes=8KiB");
  const bool on_all_ranks = GENERATE(true, false);
  const std::string name = arm + (on_all_ranks ? " on all" : " on one");
  MPI_Comm_set_name(world, name.c_str());
  mpi::configure(world, "use", "all_reduce:" + arm);
  if (on_all_ranks || world.rank() == 0) mpi::configure(world, "summary", "on");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  std::vector<double> mine(4096, world.rank()), sum(mine.size());
  for (int call = 0; call < 200; ++call) {
    mpi::all_reduce(mine.data(), sum.data(), int(mine.size()), MPI_DOUBLE, MPI_SUM, world);
    CHECK(mpi::last_arm(world) == arm);
  }
  const auto contexts = process::get()->statistics().contexts;
  const auto context = std::ranges::find(contexts, name, &select::context_statistics::communicator);
  if (world.rank() != 0 || !on_all_ranks) {
    CHECK(context == contexts.end());
    return;
  }
  REQUIRE(context != contexts.end());
  CHECK(context->policy == "fixed");
  CHECK(context->calls == 200);
  REQUIRE(context->arms.size() == 1);
  CHECK(context->arms[0].arm == arm);
  CHECK(context->arms[0].calls == 200);
  CHECK(context->arms[0].times.samples > 0);
  CHECK(context->arms[0].times.samples < 100);
}

TEST_CASE("arms that need more scratch memory than the limit give way to the MPI library's own") {
  for (const char* limit : {"0", "8191", "8192", "1MiB"}) {
    CAPTURE(limit);
    const communicator world = communicator::duplicate_of_world();
    if (world.size() < 2) return;
    mpi::configure(world, "scratch_limit", limit);
    mpi::start_tuning(world);
    std::vector<int> mine(1024, 1), sum(mine.size());
    // 2 n in `railpass algorithms`: two messages of 4096 bytes.
    mpi::all_reduce(mine.data(), sum.data(), 1024, MPI_INT, MPI_SUM, world,
                    collect(use("recursive_doubling")));
    const bool fits = std::string(limit) == "8192" || std::string(limit) == "1MiB";
    CHECK(mpi::last_arm(world) == (fits ? "recursive_doubling" : "native"));
    CHECK(sum == std::vector<int>(sum.size(), world.size()));
    // Learning tries none of them either: with no scratch memory at all a sum can only be native,
    // or in shared memory.
    if (std::string(limit) != "0") continue;
    for (int call = 0; call < 60; ++call) {
      sum_of_ranks(world);
      const arm last = parse_arm(collective::all_reduce, mpi::last_arm(world));
      CHECK(last.base->scratch.bytes(4096, 4096) == 0);
    }
  }
}

TEST_CASE("packed copies that every rank can foresee count as scratch memory") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size();
  if (p < 2) return;
  constexpr int block = 1024;
  const int all = p * block;
  const auto limited = [&](int bytes) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(world, &copy);
    mpi::configure(copy, "scratch_limit", std::to_string(bytes));
    mpi::start_tuning(copy);
    return copy;
  };
  std::vector<char> one(std::size_t(all), 1), other(one.size());

  SECTION("an exchange in place") {
    const communicator no_copy(limited(all - 1)), copy(limited(all));
    for (const communicator* const comm : {&no_copy, &copy}) {
      mpi::all_to_all(MPI_IN_PLACE, 0, MPI_CHAR, one.data(), block, MPI_CHAR, *comm,
                      collect(use("scattered")));
      CHECK(mpi::last_arm(*comm) == (comm == &copy ? "scattered" : "native"));
    }
    mpi::all_to_all(one.data(), block, MPI_CHAR, other.data(), block, MPI_CHAR, no_copy,
                    collect(use("scattered")));
    CHECK(mpi::last_arm(no_copy) == "scattered");
  }
  SECTION("blocks that do not begin with the root's") {
    const communicator comm(limited(all));  // binomial needs half of it without a copy
    for (const int root : {0, 1})
      for (const char* const arm : {"binomial", "linear"}) {
        mpi::gather(one.data(), block, MPI_CHAR, other.data(), block, MPI_CHAR, root, comm,
                    collect(use(arm)));
        const bool copies = root == 1 && std::string(arm) == "binomial";
        CHECK(mpi::last_arm(comm) == (copies ? "native" : arm));
      }
  }
  SECTION("blocks whose places are known to their rank alone") {
    const communicator comm(limited(all - 1));
    const std::vector<int> counts(std::size_t(p), block);
    std::vector<int> places;
    for (int rank = 0; rank < p; ++rank) places.push_back(rank * block);
    for (const char* const arm : {"bine", "ring"}) {
      mpi::all_gatherv(one.data(), block, MPI_CHAR, other.data(), counts.data(), places.data(),
                       MPI_CHAR, comm, collect(use(arm)));
      CHECK(mpi::last_arm(comm) == (std::string(arm) == "bine" ? "native" : arm));
    }
  }
  SECTION("a sum in rank order for another rank than the first") {
    MPI_Op ordered = MPI_OP_NULL;
    MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 0, &ordered);
    const auto needs =
        int(parse_arm(collective::reduce, "linear").base->scratch.bytes(block, block));
    const communicator comm(limited(needs));
    for (const int root : {0, 1}) {
      mpi::reduce(one.data(), other.data(), block, MPI_CHAR, ordered, root, comm,
                  collect(use("linear")));
      CHECK(mpi::last_arm(comm) == (root == 0 ? "linear" : "native"));
    }
    MPI_Op_free(&ordered);
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

namespace {

// Sums of which next to nothing is left, by every arm: where they differ, by rounding.
template <class T>
void check_sums_that_cancel(MPI_Datatype type, int components) {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), n = 64;
  const auto size = std::size_t(n * p * components);
  const records log;
  mpi::configure(world, "verify", "on");
  mpi::configure(world, "policy", "round_robin");
  mpi::start_tuning(world);
  const auto term = [](int rank, std::size_t i) {
    return T(1 + rank % 3) / T(3 + (7 * rank + int(i)) % 11) * T(rank % 2 ? 1e7 : -1);
  };
  std::vector<T> terms(size), result(size);
  for (std::size_t i = 0; i < size; ++i) {
    T others = 0;
    for (int r = 0; r + 1 < p; ++r) others += term(r, i);
    terms[i] = world.rank() == p - 1 ? -others : term(world.rank(), i);
  }
  for (int call = 0; call < 25; ++call) {
    mpi::all_reduce(terms.data(), result.data(), n, type, MPI_SUM, world);
    mpi::reduce(terms.data(), result.data(), n, type, MPI_SUM, call % p, world);
    mpi::reduce_scatter_block(terms.data(), result.data(), n, type, MPI_SUM, world);
    mpi::scan(terms.data(), result.data(), n, type, MPI_SUM, world);
    mpi::exscan(terms.data(), result.data(), n, type, MPI_SUM, world);
    result = terms;
    mpi::all_reduce(MPI_IN_PLACE, result.data(), n, type, MPI_SUM, world);
    std::vector<int> counts(std::size_t(p), 0);  // all with one rank
    counts[std::size_t(call % p)] = n;
    mpi::reduce_scatter(terms.data(), result.data(), counts.data(), type, MPI_SUM, world);
  }
  CHECK(log.texts == std::vector<std::string>{});
}

}  // namespace

TEST_CASE("verify: sums of which next to nothing is left are not called wrong") {
  check_sums_that_cancel<float>(MPI_FLOAT, 1);
  check_sums_that_cancel<double>(MPI_DOUBLE, 1);
  check_sums_that_cancel<long double>(MPI_LONG_DOUBLE, 1);
  check_sums_that_cancel<double>(MPI_C_DOUBLE_COMPLEX, 2);
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

TEST_CASE("verify: values are compared, not the bytes between them") {
  struct pair {
    long double value;
    int index;
  };
  const communicator world = communicator::duplicate_of_world();
  const records log;
  mpi::configure(world, "verify", "on");
  mpi::configure(world, "policy", "round_robin");
  mpi::start_tuning(world);
  bool right = true;
  for (int call = 0; call < 30; ++call) {
    pair in[3], out[3];
    std::memset(static_cast<void*>(in), world.rank() + 1, sizeof in);
    for (pair& p : in) p.value = 1, p.index = world.rank();
    mpi::all_reduce(in, out, 3, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, world);
    for (const pair& p : out) right = right && p.value == 1 && p.index == 0;
  }
  CHECK(right);
  CHECK(log.texts == std::vector<std::string>{});
}

TEST_CASE("verify: what counts as a difference between two results") {
  MPI_Datatype mixed = MPI_DATATYPE_NULL;  // a short, a gap, two pairs of double and int
  const int lengths[2] = {1, 2};
  const MPI_Aint places[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_SHORT, MPI_DOUBLE_INT};
  MPI_Type_create_struct(2, lengths, places, types, &mixed);
  MPI_Type_commit(&mixed);
  user_block block{.count = 2, .type = mixed};
  REQUIRE(layout_of(mixed, process::get()->datatype_key(), block.layout) == MPI_SUCCESS);
  REQUIRE(block.bytes() == 2 * (2 + 2 * 12));
  const std::vector<std::byte> a(std::size_t(block.bytes()));
  const auto is_same = [&](const std::vector<std::byte>& b) {
    bool same = false;
    CHECK(compare_values({block}, a, b, same) == MPI_SUCCESS);
    return same;
  };
  for (std::size_t at = 0; at < a.size(); ++at) {
    std::vector<std::byte> b = a;
    b[at] = std::byte{1};
    CHECK(!is_same(b));
  }
  std::vector<std::byte> negative = a;
  const double zero = -0.0;
  std::memcpy(negative.data() + 2, &zero, sizeof zero);
  CHECK(is_same(negative));
  CHECK(!is_same({}));
  MPI_Type_free(&mixed);

  if (std::numeric_limits<long double>::digits != 64) return;  // it has no bytes without meaning
  block = {.count = 1, .type = MPI_LONG_DOUBLE_INT};
  REQUIRE(layout_of(block.type, process::get()->datatype_key(), block.layout) == MPI_SUCCESS);
  REQUIRE(block.bytes() == 20);
  std::vector<std::byte> x(20), y(20);
  for (std::size_t at = 0; at < x.size(); ++at) {
    CAPTURE(at);
    y = x;
    y[at] = std::byte{1};
    bool same = false;
    CHECK(compare_values({block}, x, y, same) == MPI_SUCCESS);
    CHECK(same == (at >= 10 && at < 16));
  }
}

TEST_CASE("a dump can be written at any time, and only where it can be") {
  const communicator world = communicator::duplicate_of_world();
  mpi::start_tuning(world);
  for (int call = 0; call < 20; ++call) sum_of_ranks(world);
  CHECK_THROWS_AS(mpi::dump_statistics("/nonexistent/folder/dump.json"), error);
  if (world.rank() != 0) return;
  const scratch_directory folder;
  const std::string path = folder.file("dump.json");
  mpi::dump_statistics(path);
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (world.size() > 1) CHECK(text.find("\"all_reduce\"") != std::string::npos);
}

TEST_CASE("calls on several communicators from several threads do not disturb each other") {
  int provided = 0;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    WARN("MPI_THREAD_MULTIPLE is not provided: nothing to test");
    return;
  }
#ifdef MPICH
  constexpr int num_threads = 2;  // its threads spin: with more ranks than cores more take minutes
#else
  constexpr int num_threads = 4;
#endif
  std::deque<communicator> comms;
  for (int t = 0; t < num_threads; ++t) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    comms.emplace_back(copy);
  }
  // A datatype that all threads meet for the first time.
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  std::array<int, num_threads> wrong{};
  std::atomic<bool> over{false};
  const auto work = [&](int t) {
    const communicator& comm = comms[std::size_t(t)];
    mpi::configure(comm, "policy", t % 2 ? "round_robin" : "knowledge_gradient");
    if (mpi::start_tuning(comm) != MPI_SUCCESS) ++wrong[std::size_t(t)];
    for (int call = 0; call < 50; ++call) {
      const int root = call % comm.size();
      std::array<int, 2> value{root == comm.rank() ? call : -1, root == comm.rank() ? t : -1};
      if (mpi::broadcast(value.data(), 1, pair, root, comm) != MPI_SUCCESS ||
          value != std::array<int, 2>{call, t} ||
          sum_of_ranks(comm) != comm.size() * (comm.size() - 1) / 2)
        ++wrong[std::size_t(t)];
      if (call % 25 == 0) {  // comes and goes meanwhile
        MPI_Comm copy = MPI_COMM_NULL;
        MPI_Comm_dup(comm, &copy);
        const communicator second(copy);
        for (int i = 0; i < 10; ++i)
          if (sum_of_ranks(second) != comm.size() * (comm.size() - 1) / 2) ++wrong[std::size_t(t)];
      }
    }
  };
  const scratch_directory folder;
  const std::string path = folder.file("threads.json");
  std::thread watcher([&] {
    while (!over) {
      mpi::dump_statistics(path);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  std::vector<std::thread> threads;
  for (int t = 1; t < num_threads; ++t) threads.emplace_back(work, t);
  work(0);
  for (std::thread& t : threads) t.join();
  over = true;
  watcher.join();
  MPI_Type_free(&pair);
  CHECK(wrong == std::array<int, num_threads>{});
}
