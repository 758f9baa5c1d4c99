// SPDX-License-Identifier: BSL-1.0
//
// Checks of results: no right result is called wrong, and an arm or an MPI library with a planted
// fault is found in the first checked call that meets it.
#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::records;

namespace {

// Set before railpass reads its settings: faults are planted in messages.
[[maybe_unused]] const int no_shared_memory = setenv("RAILPASS_SHARED_MEMORY", "0", 1);

// This rank alters the first byte of messages of this length or more that these arms send.
struct faulty_arms {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<std::string> algorithms;
  int bytes = 0;
  int stride = 1;     // one of this many
  bool lose = false;  // instead of altering them
  int sent = 0;

  bool alters(int count) {
    if (comm == MPI_COMM_NULL || count < bytes) return false;
    const std::string arm = mpi::last_arm(comm);
    return std::ranges::any_of(algorithms,
                               [&](const std::string& a) { return arm.starts_with(a); }) &&
           ++sent % stride == 0;
  }
};
faulty_arms planted;
// The MPI library compares unsigned numbers as signed ones.
bool compares_as_signed = false;
MPI_Datatype compared_as(MPI_Datatype type, MPI_Op operation) {
  const bool is_extreme = operation == MPI_MIN || operation == MPI_MAX;
  return compares_as_signed && is_extreme && type == MPI_UINT64_T ? MPI_INT64_T : type;
}
// This rank gets a wrong first byte in broadcasts of this length.
int wrong_broadcast_bytes = 0;
std::deque<std::vector<std::byte>> altered;

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::vector<int> numbers(int count, int first) {
  std::vector<int> n(std::size_t(count), 0);
  std::iota(n.begin(), n.end(), first);
  return n;
}

// The log's lines about wrong results. The log also names known faults of the MPI library.
std::vector<std::string> alarms(const records& log) {
  std::vector<std::string> found = log.texts;
  std::erase_if(found, [](const std::string& text) { return text.starts_with("known fault:"); });
  return found;
}

// A communicator on which every call is checked.
void check_all(MPI_Comm comm, const char* policy = "round_robin") {
  mpi::configure(comm, "checks", "1000000");
  mpi::configure(comm, "policy", policy);
  mpi::start_tuning(comm);
}

}  // namespace

// Called instead of the MPI library's.
extern "C" int PMPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                          MPI_Comm comm, MPI_Request* request) {
  if (type == MPI_BYTE && planted.alters(count)) {
    if (planted.lose) {
      *request = MPI_REQUEST_NULL;
      return MPI_SUCCESS;
    }
    const auto* const bytes = static_cast<const std::byte*>(data);
    altered.emplace_back(bytes, bytes + count)[0] ^= std::byte{1};
    data = altered.back().data();
  }
  return real<decltype(PMPI_Isend)>("PMPI_Isend")(data, count, type, to, tag, comm, request);
}

extern "C" int PMPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const int code = real<decltype(PMPI_Bcast)>("PMPI_Bcast")(data, count, type, root, comm);
  int size = 0;
  MPI_Type_size(type, &size);
  if (count * size == wrong_broadcast_bytes) *static_cast<std::byte*>(data) ^= std::byte{1};
  return code;
}

extern "C" int PMPI_Allreduce(const void* sent, void* received, int count, MPI_Datatype type,
                              MPI_Op operation, MPI_Comm comm) {
  return real<decltype(PMPI_Allreduce)>("PMPI_Allreduce")(
      sent, received, count, compared_as(type, operation), operation, comm);
}

extern "C" int PMPI_Reduce_local(const void* left, void* right, int count, MPI_Datatype type,
                                 MPI_Op operation) {
  return real<decltype(PMPI_Reduce_local)>("PMPI_Reduce_local")(
      left, right, count, compared_as(type, operation), operation);
}

TEST_CASE("right results are not called wrong, whatever the call") {
  const communicator world = communicator::duplicate_of_world();
  const records log;
  check_all(world);
  const int p = world.size(), me = world.rank();
  bool right = true;
  const char* const wanted = std::getenv("TEST_CALLS");
  const int calls = wanted ? std::stoi(wanted) : 60;
  for (int call = 0; call < calls; ++call) {
    const int n = call % 3 == 0 ? 1 : call % 3 == 1 ? 40 : 700, root = call % p;
    std::vector<int> mine = numbers(n * p, 1000 * me + call), all(std::size_t(n * p), -1),
                     own(std::size_t(n), -1);
    const auto expect = [&](bool held) { right = right && held; };
    std::vector<int> word = numbers(n, root + call);
    if (me != root) word.assign(word.size(), 0);
    mpi::broadcast(word.data(), n, MPI_INT, root, world);
    expect(word == numbers(n, root + call));
    mpi::all_gather(mine.data(), n, MPI_INT, all.data(), n, MPI_INT, world);
    expect(all[std::size_t(n * (p - 1))] == 1000 * (p - 1) + call);
    std::copy_n(mine.begin(), n, all.begin() + n * me);
    mpi::all_gather(MPI_IN_PLACE, 0, MPI_INT, all.data(), n, MPI_INT, world);
    expect(all[0] == call);
    mpi::gather(mine.data(), n, MPI_INT, all.data(), n, MPI_INT, root, world);
    mpi::gather(me == root ? MPI_IN_PLACE : mine.data(), n, MPI_INT, all.data(), n, MPI_INT, root,
                world);
    if (me == root) expect(all[std::size_t(n * (p - 1))] == 1000 * (p - 1) + call);
    mpi::scatter(mine.data(), n, MPI_INT, own.data(), n, MPI_INT, root, world);
    expect(own[0] == 1000 * root + call + n * me);
    mpi::scatter(mine.data(), n, MPI_INT, me == root ? MPI_IN_PLACE : own.data(), n, MPI_INT, root,
                 world);
    mpi::all_to_all(mine.data(), n, MPI_INT, all.data(), n, MPI_INT, world);
    expect(all[std::size_t(n * (p - 1))] == 1000 * (p - 1) + call + n * me);
    std::vector<int> counts(std::size_t(p), 0), places(std::size_t(p), 0);
    for (int r = 0; r < p; ++r) {
      counts[std::size_t(r)] = (r + call) % 3 == 0 ? 0 : n;
      places[std::size_t(r)] = r * n;
    }
    const int own_count = counts[std::size_t(me)];
    mpi::all_gatherv(mine.data(), own_count, MPI_INT, all.data(), counts.data(), places.data(),
                     MPI_INT, world);
    mpi::gatherv(mine.data(), own_count, MPI_INT, all.data(), counts.data(), places.data(), MPI_INT,
                 root, world);
    mpi::scatterv(mine.data(), counts.data(), places.data(), MPI_INT, own.data(), own_count,
                  MPI_INT, root, world);
    std::vector<int> sent(counts.size(), own_count);
    mpi::all_to_allv(mine.data(), counts.data(), places.data(), MPI_INT, all.data(), sent.data(),
                     places.data(), MPI_INT, world);
    std::vector<int> byte_places(places);
    for (int& place : byte_places) place *= int(sizeof(int));
    const std::vector<MPI_Datatype> types(counts.size(), MPI_INT);
    mpi::all_to_allw(mine.data(), counts.data(), byte_places.data(), types.data(), all.data(),
                     sent.data(), byte_places.data(), types.data(), world);
    mpi::all_reduce(mine.data(), all.data(), n, MPI_INT, MPI_SUM, world);
    expect(all[0] == p * call + 1000 * p * (p - 1) / 2);
    std::vector<int> twice = mine;
    mpi::all_reduce(MPI_IN_PLACE, twice.data(), n, MPI_INT, MPI_SUM, world);
    expect(twice[0] == all[0]);
    mpi::reduce(mine.data(), all.data(), n, MPI_INT, MPI_SUM, root, world);
    mpi::reduce(mine.data(), all.data(), n, MPI_INT, MPI_MAX, root, world);
    mpi::reduce_scatter_block(mine.data(), own.data(), n, MPI_INT, MPI_SUM, world);
    mpi::reduce_scatter(mine.data(), all.data(), counts.data(), MPI_INT, MPI_SUM, world);
    mpi::scan(mine.data(), all.data(), n, MPI_INT, MPI_SUM, world);
    expect(all[0] == (me + 1) * call + 1000 * me * (me + 1) / 2);
    mpi::exscan(mine.data(), all.data(), n, MPI_INT, MPI_SUM, world);
    std::vector<double> terms(std::size_t(n), 0.1 * (me + 1)), sum(terms);
    mpi::all_reduce(terms.data(), sum.data(), n, MPI_DOUBLE, MPI_SUM, world);
    mpi::scan(terms.data(), sum.data(), n, MPI_DOUBLE, MPI_SUM, world);
    mpi::all_reduce(terms.data(), sum.data(), n, MPI_DOUBLE, MPI_MIN, world);
    expect(sum[0] == 0.1);
    mpi::all_reduce(MPI_IN_PLACE, terms.data(), n, MPI_DOUBLE, MPI_SUM, world);
    for (const MPI_Datatype type : {MPI_UINT8_T, MPI_FLOAT, MPI_INT64_T})
      mpi::all_reduce(mine.data(), all.data(), n / 2, type, MPI_SUM, world);
    const MPI_Datatype kinds[]{MPI_INT8_T, MPI_UINT16_T, MPI_INT, MPI_UNSIGNED, MPI_INT64_T};
    mpi::all_reduce(mine.data(), all.data(), n / 2, kinds[call % 5], call % 2 ? MPI_MIN : MPI_MAX,
                    world);
    std::vector<int> least = numbers(n, -1000 * me);
    mpi::all_reduce(MPI_IN_PLACE, least.data(), n, MPI_INT, MPI_MIN, world);
    expect(least == numbers(n, -1000 * (p - 1)));
    mpi::all_reduce(mine.data(), all.data(), n / 2, MPI_2INT, MPI_MINLOC, world);
    mpi::all_reduce(mine.data(), all.data(), n, MPI_UINT32_T, MPI_BXOR, world);
    mpi::barrier(world);
  }
  CHECK(right);
  CHECK(alarms(log) == std::vector<std::string>{});
  CHECK(process::get()->exclusions().empty());
}

TEST_CASE("data with holes are checked") {
  const communicator world = communicator::duplicate_of_world();
  const records log;
  check_all(world);
  MPI_Datatype every_other = MPI_DATATYPE_NULL;
  MPI_Type_vector(10, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  for (int call = 0; call < 30; ++call) {
    std::vector<int> data(20, world.rank() == 0 ? call : -1);
    mpi::broadcast(data.data(), 1, every_other, 0, world);
    CHECK(data[18] == call);
    CHECK(data[19] == (world.rank() == 0 ? call : -1));
  }
  MPI_Type_free(&every_other);
  CHECK(alarms(log) == std::vector<std::string>{});
}

namespace {

// Calls until long after the faulty arm has run: every result is right.
void meet_fault(collective op, const char* algorithm, const std::function<bool(MPI_Comm)>& run,
                int message_bytes) {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 3) return;
  const records log;
  check_all(world);
  if (world.rank() == 1)
    planted = {.comm = world, .algorithms = {algorithm}, .bytes = message_bytes};
  bool right = true;
  for (int call = 0; call < 400; ++call) right = right && run(world);
  planted = {};
  altered.clear();
  CHECK(right);
  const auto known = process::get()->exclusions();
  CHECK(known.has(*find_algorithm(op, algorithm), {.bytes = 4096, .num_ranks = world.size()}));
  CAPTURE(log.texts);
  if (world.rank() == 0)
    CHECK(std::ranges::count_if(log.texts, [&](const std::string& text) {
            return text.find("is wrong (") != text.npos && text.find(algorithm) != text.npos;
          }) == 1);
}

}  // namespace

TEST_CASE("an arm that moves wrong data leaves use, and the call returns the right result") {
  const auto run = [](MPI_Comm comm) {
    int rank = 0, size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    std::vector<int> mine = numbers(1024, 5000 * rank), all(std::size_t(1024 * size), -1);
    mpi::all_gather(mine.data(), 1024, MPI_INT, all.data(), 1024, MPI_INT, comm);
    bool right = true;
    for (int r = 0; r < size; ++r)
      for (int i = 0; i < 1024; ++i)
        right = right && all[std::size_t(1024 * r + i)] == 5000 * r + i;
    return right;
  };
  meet_fault(collective::all_gather, "ring", run, 4096);
}

TEST_CASE("an arm that adds integers wrongly leaves use") {
  const auto run = [](MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    std::vector<int> mine = numbers(1024, 1), sum(1024, -1);
    mpi::all_reduce(mine.data(), sum.data(), 1024, MPI_INT, MPI_SUM, comm);
    bool right = true;
    for (int i = 0; i < 1024; ++i) right = right && sum[std::size_t(i)] == size * (i + 1);
    return right;
  };
  meet_fault(collective::all_reduce, "recursive_doubling", run, 4096);
}

TEST_CASE("an arm that finds a wrong maximum leaves use, by two of three results") {
  const auto run = [](MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    std::vector<int> mine = numbers(1024, -2 * rank), most(1024, -1);
    mpi::scan(mine.data(), most.data(), 1024, MPI_INT, MPI_MAX, comm);
    return most == numbers(1024, 0);
  };
  meet_fault(collective::scan, "linear", run, 4096);
}

TEST_CASE("an arm that finds a maximum that no rank has leaves use") {
  const auto run = [](MPI_Comm comm) {
    std::vector<int> mine = numbers(1024, 0), most(1024, -1);
    mpi::all_reduce(mine.data(), most.data(), 1024, MPI_INT, MPI_MAX, comm);
    return most == mine;
  };
  meet_fault(collective::all_reduce, "reduce_broadcast", run, 4096);
}

TEST_CASE("an operation of the MPI library that compares wrongly is reported, and all arms stay") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const records log;
  check_all(world);
  const std::uint64_t large = std::uint64_t{1} << 63;
  compares_as_signed = true;
  for (int call = 0; call < 60; ++call) {
    std::vector<std::uint64_t> mine(100, world.rank() == 0 ? large : 1), extreme(100);
    mpi::all_reduce(mine.data(), extreme.data(), 100, MPI_UINT64_T, call % 2 ? MPI_MAX : MPI_MIN,
                    world);
  }
  compares_as_signed = false;
  std::vector<std::string> found = alarms(log);
  CAPTURE(found);
  CHECK(found.size() == (world.rank() == 0 ? 2 : 0));
  if (world.rank() == 0) {
    CHECK(log.any_has("the MPI library's operation MPI_MIN of MPI_UINT64_T is wrong"));
    CHECK(log.any_has("the MPI library's operation MPI_MAX of MPI_UINT64_T is wrong"));
  }
  for (const select::exclusion_words& w : process::get()->exclusions().all())
    CHECK(select::exclusion_of(w).what->name != "native");
}

TEST_CASE("extremes of numbers and NaN, and of zeros of both signs, are not called wrong") {
  const communicator world = communicator::duplicate_of_world();
  const records log;
  check_all(world);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int call = 0; call < 60; ++call) {
    const bool has_nan = call % 2 == 0 && world.rank() == call % world.size();
    std::vector<double> mine(70, has_nan ? nan : world.rank() % 2 ? -0.0 : 0.0), extreme(70);
    if (call % 3 == 0) mine[69] = 1e-310 * world.rank();
    for (const MPI_Op operation : {MPI_MIN, MPI_MAX}) {
      mpi::all_reduce(mine.data(), extreme.data(), 70, MPI_DOUBLE, operation, world);
      mpi::reduce(mine.data(), extreme.data(), 70, MPI_DOUBLE, operation, 0, world);
      mpi::scan(mine.data(), extreme.data(), 70, MPI_DOUBLE, operation, world);
    }
  }
  CHECK(alarms(log) == std::vector<std::string>{});
}

TEST_CASE("a wrong result of the MPI library is reported, and native stays") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const records log;
  check_all(world);
  if (world.rank() == 1) wrong_broadcast_bytes = 4000;
  bool right = true;
  for (int call = 0; call < 30; ++call) {
    std::vector<int> data = numbers(1000, world.rank() == 0 ? call : -1);
    mpi::broadcast(data.data(), 1000, MPI_INT, 0, world);
    right = right && data == numbers(1000, call);
  }
  wrong_broadcast_bytes = 0;
  CHECK(right);
  CHECK(!process::get()->exclusions().has_native());
  CAPTURE(log.texts);
  if (world.rank() == 0)
    CHECK(std::ranges::any_of(log.texts, [](const std::string& text) {
      return text.find("the result of native is wrong (1 wrong byte, from byte 0 on, on rank 1") !=
                 text.npos &&
             text.find("only a site's file may quarantine") != text.npos;
    }));
}

TEST_CASE("wrong results of two arms on one host accuse the host, and the second stays") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 3) return;
  const records log;
  check_all(world);
  if (world.rank() == 1)
    planted = {.comm = world, .algorithms = {"binomial", "linear"}, .bytes = 4096};
  for (int call = 0; call < 200; ++call) {
    std::vector<int> mine = numbers(1024, call), all(std::size_t(1024 * world.size()), -1);
    mpi::gather(mine.data(), 1024, MPI_INT, all.data(), 1024, MPI_INT, 0, world);
  }
  planted = {};
  altered.clear();
  int excluded = 0;
  for (const select::exclusion_words& w : process::get()->exclusions().all())
    if (select::exclusion_of(w).what->op == collective::gather) ++excluded;
  CHECK(excluded == 1);
  CAPTURE(log.texts);
  if (world.rank() == 0)
    CHECK(std::ranges::any_of(log.texts, [](const std::string& text) {
      return text.find("the host may be faulty") != text.npos;
    }));
}

TEST_CASE("the first check that meets a rare fault takes the arm out") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 3) return;
  check_all(world, "fixed");
  std::string arm;
  bool right = true;
  int calls = 0;
  for (int call = 0; call < 3000; ++call) {
    std::vector<int> word = numbers(1024, world.rank() == 0 ? call : -1);
    mpi::broadcast(word.data(), 1024, MPI_INT, 0, world);
    right = right && word == numbers(1024, call);
    if (call == 0) arm = mpi::last_arm(world);
    if (call == 0 && world.rank() <= 1)
      planted = {.comm = world, .algorithms = {arm}, .bytes = 16, .stride = 1000};
    if (mpi::last_arm(world) == arm) ++calls;
  }
  planted = {};
  altered.clear();
  CAPTURE(arm, calls);
  CHECK(right);
  REQUIRE(arm != "native");
  CHECK(calls < 1500);
  CHECK(process::get()->exclusions().has(*parse_arm(collective::broadcast, arm).base,
                                         {.bytes = 4096, .num_ranks = world.size()}));
}

TEST_CASE("without checks a fault stays") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 3) return;
  mpi::configure(world, "checks", "0");
  mpi::configure(world, "policy", "round_robin");
  mpi::start_tuning(world);
  if (world.rank() == 1) planted = {.comm = world, .algorithms = {"linear"}, .bytes = 4096};
  for (int call = 0; call < 200; ++call) {
    std::vector<int> mine = numbers(1024, call), some(1024, -1);
    mpi::exscan(mine.data(), some.data(), 1024, MPI_INT, MPI_SUM, world);
  }
  planted = {};
  altered.clear();
  CHECK(!process::get()->exclusions().has(*find_algorithm(collective::exscan, "linear"),
                                          {.bytes = 4096, .num_ranks = world.size()}));
}

// Run by cli/quarantine.py after the run that found the fault.
TEST_CASE("the algorithm that an earlier run has put into quarantine is not used", "[.]") {
  const communicator world = communicator::duplicate_of_world();
  MPI_Comm others = MPI_COMM_NULL;
  MPI_Comm_split(world, world.rank() == 0 ? 0 : 1, 0, &others);
  const communicator without_rank_0(others);
  for (const communicator* comm : {&without_rank_0, &world}) {
    check_all(*comm);
    for (int call = 0; call < 300; ++call) {
      std::vector<int> mine = numbers(1024, call), all(std::size_t(1024 * comm->size()), -1);
      mpi::all_gather(mine.data(), 1024, MPI_INT, all.data(), 1024, MPI_INT, *comm);
      CHECK(mpi::last_arm(*comm) != "ring");
    }
  }
  CHECK(process::get()->exclusions().all().size() == 1);
}

TEST_CASE("no algorithm is in quarantine", "[.]") { CHECK(process::get()->exclusions().empty()); }

namespace {

void gather_by_ring(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> mine = numbers(1024, 0), all(std::size_t(1024 * size), -1);
  call_options by;
  by.arm = "ring";
  mpi::all_gather(mine.data(), 1024, MPI_INT, all.data(), 1024, MPI_INT, comm, by);
}

// After two calls.
MPI_Comm world_before_hang() {
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Comm_set_name(world, "hangs");
  mpi::start_tuning(world);
  gather_by_ring(world);
  gather_by_ring(world);
  return world;
}

bool has_records() {
  const std::filesystem::path records =
      std::filesystem::path(std::getenv("RAILPASS_KNOWLEDGE")) / "halted";
  return std::filesystem::exists(records) && !std::filesystem::is_empty(records);
}

}  // namespace

// Run by cli/hangs.py, which kills them.
TEST_CASE("an arm loses its messages", "[.]") {
  const communicator world(world_before_hang());
  planted = {.comm = world, .algorithms = {"ring"}, .bytes = 4096, .lose = true};
  gather_by_ring(world);
}
TEST_CASE("the last rank makes no call", "[.]") {
  const communicator world(world_before_hang());
  if (world.rank() == world.size() - 1)
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  gather_by_ring(world);
}
TEST_CASE("the last rank is stopped", "[.]") {
  const communicator world(world_before_hang());
  if (world.rank() == world.size() - 1) raise(SIGSTOP);
  gather_by_ring(world);
}
// Not killed.
TEST_CASE("the last rank is late", "[.]") {
  const communicator world(world_before_hang());
  if (world.rank() == world.size() - 1)
    while (!has_records()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  gather_by_ring(world);
}
