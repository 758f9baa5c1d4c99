// SPDX-License-Identifier: BSL-1.0
//
// Calls whose lengths only pairs of ranks know. Sizes vary between ranks, between calls, and both.
// Results are right whatever the sizes in synchronisations lead to, and small calls stay native if
// the setting requires that.
#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::records;

namespace {

/// The number of ints that one rank sends to another rank in a call.
using lengths = std::function<int(int from, int to, int call)>;

int value_of(int from, int to, int call, int i) { return (from * 31 + to) * 1009 + call * 7 + i; }

/// The blocks that a rank sends or receives.
struct blocks {
  std::vector<int> counts, displacements, bytes, values;
  std::vector<MPI_Datatype> types;

  blocks(int size, const std::function<int(int)>& count) : types(std::size_t(size), MPI_INT) {
    for (int r = 0; r < size; ++r) {
      displacements.push_back(counts.empty() ? 0 : displacements.back() + counts.back());
      bytes.push_back(displacements.back() * int(sizeof(int)));
      counts.push_back(count(r));
    }
    values.assign(std::size_t(displacements.back() + counts.back()) + 1, -1);
  }
  int* at(int r) { return values.data() + displacements[std::size_t(r)]; }
  void fill(const std::function<int(int r, int i)>& value) {
    for (int r = 0; r < int(counts.size()); ++r)
      for (int i = 0; i < counts[std::size_t(r)]; ++i) at(r)[i] = value(r, i);
  }
  bool operator==(const blocks& o) const { return values == o.values; }
};

constexpr int num_forms = 4;

/// Makes one call of a form on all ranks; returns whether the result is right.
bool run(int form, const communicator& comm, const lengths& n, int call) {
  const int rank = comm.rank(), size = comm.size(), root = 1 % size;
  const auto all_of = [&](const auto& count, const auto& value) {
    blocks made(size, count);
    made.fill(value);
    return made;
  };
  const auto sends = [&](int to) { return n(rank, to, call); };
  const auto receives = [&](int from) { return n(from, rank, call); };
  blocks sent = all_of(sends, [&](int to, int i) { return value_of(rank, to, call, i); });
  blocks received(size, receives);
  const blocks expected =
      all_of(receives, [&](int from, int i) { return value_of(from, rank, call, i); });
  const int to_root = n(rank, root, call), from_root = n(root, rank, call);
  int code = MPI_SUCCESS;
  switch (form) {
    case 0:
      code =
          mpi::gatherv(sent.at(root), to_root, MPI_INT, received.values.data(),
                       received.counts.data(), received.displacements.data(), MPI_INT, root, comm);
      return code == MPI_SUCCESS && (rank != root || received == expected);
    case 1: {
      std::vector<int> mine(std::size_t(from_root) + 1, -1);
      code = mpi::scatterv(sent.values.data(), sent.counts.data(), sent.displacements.data(),
                           MPI_INT, mine.data(), from_root, MPI_INT, root, comm);
      for (int i = 0; i < from_root; ++i)
        if (mine[std::size_t(i)] != value_of(root, rank, call, i)) return false;
      return code == MPI_SUCCESS && mine.back() == -1;
    }
    case 2:
      code = mpi::all_to_allv(sent.values.data(), sent.counts.data(), sent.displacements.data(),
                              MPI_INT, received.values.data(), received.counts.data(),
                              received.displacements.data(), MPI_INT, comm);
      return code == MPI_SUCCESS && received == expected;
    default:
      code = mpi::all_to_allw(sent.values.data(), sent.counts.data(), sent.bytes.data(),
                              sent.types.data(), received.values.data(), received.counts.data(),
                              received.bytes.data(), received.types.data(), comm);
      return code == MPI_SUCCESS && received == expected;
  }
}

int in_turns(int, int, int call) { return call % 2 ? 2 : 5000; }
int by_ranks(int from, int to, int) { return (from * 7 + to * 3) % 5 * 300; }
int by_both(int from, int to, int call) { return (from + to + call) % 4 ? 0 : call % 3 * 2000; }

/// Rank 0's statistics for this collective: calls of all sizes, and of single sizes.
struct told {
  std::int64_t of_all_sizes = 0, of_one_size = 0;
};
told calls_of(const std::string& name, const std::string& collective) {
  told result;
  for (const auto& c : process::get()->statistics().contexts)
    if (c.communicator == name && c.collective == collective)
      (c.mean_bytes ? result.of_all_sizes : result.of_one_size) += c.calls;
  return result;
}

}  // namespace

TEST_CASE("results are right whatever sizes ranks and calls have") {
  const communicator world = communicator::duplicate_of_world();
  const records log;
  mpi::configure(world, "verify", "on");
  mpi::configure(world, "policy", "round_robin");  // every arm, all the time
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  for (const lengths& n : {lengths(in_turns), lengths(by_ranks), lengths(by_both)})
    for (int call = 0; call < 24; ++call)
      for (int form = 0; form < num_forms; ++form) {
        CAPTURE(call, form);
        REQUIRE(run(form, world, n, call));
      }
  CHECK(log.texts.empty());
}

TEST_CASE("algorithms that pass blocks on pad them, unless that takes far more memory") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size();
  mpi::configure(world, "use", "all_to_allv:bruck+radix=3,all_to_allw:mesh");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const lengths to_the_last = [p](int from, int to, int) {
    return from == 0 && to == p - 1 ? 9999 : 0;
  };
  const lengths all[] = {by_ranks, by_both, to_the_last, [](int, int, int) { return 0; }};
  for (int call = 0; call < 8; ++call)
    for (const lengths& n : all)
      for (const int form : {2, 3}) {
        CAPTURE(call, form);
        REQUIRE(run(form, world, n, call));
      }
  REQUIRE(run(2, world, by_ranks, 0));
  CHECK(mpi::last_arm(world) == (p == 1 ? "native" : "bruck+radix=3"));
  REQUIRE(run(2, world, to_the_last, 0));
  CHECK(mpi::last_arm(world) == (p == 1 || p >= 8 ? "native" : "bruck+radix=3"));
  const communicator without_room = communicator::duplicate_of_world();
  mpi::configure(without_room, "use", "all_to_allv:bruck");
  mpi::configure(without_room, "scratch_limit", "0");
  REQUIRE(mpi::start_tuning(without_room) == MPI_SUCCESS);
  REQUIRE(run(2, without_room, by_ranks, 0));
  CHECK(mpi::last_arm(without_room) == "native");
}

// During its life, each look at railpass' clock on this process advances the clock by a
// millisecond. Calls, and asking for their size, take that long.
class slow_clock {
 public:
  slow_clock() {
    process::get()->use_clock([] { return now_s_ += 1e-3; });
  }
  ~slow_clock() { process::get()->use_clock(steady_clock_s); }
  slow_clock(const slow_clock&) = delete;
  slow_clock& operator=(const slow_clock&) = delete;

 private:
  static inline double now_s_ = 1000;
};

/// Makes calls until rank 0 has seen enough; returns false if that never happens.
template <class Enough>
bool call_until(const communicator& comm, const Enough& enough) {
  constexpr int calls_between = 16;
  for (int call = 0; call < 3000; ++call) {
    REQUIRE(run(2, comm, in_turns, call));
    if (call % calls_between != 0) continue;
    int is_enough = comm.rank() == 0 && enough() ? 1 : 0;
    MPI_Bcast(&is_enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (is_enough) return true;
  }
  return false;
}

TEST_CASE("calls ask for their size where that seems to cost little, and stop if it does not") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const records log;
  MPI_Comm_set_name(world, "asking");
  mpi::configure(world, "verify", "on");
  process::get()->account().earn(1e9);  // the tests before this one have spent much
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const slow_clock clock;
  told before;
  const auto now = [] { return calls_of("asking", "all_to_allv"); };
  REQUIRE(call_until(world, [&] { return (before = now()).of_one_size >= 8; }));
  REQUIRE(call_until(world, [&] { return now().of_all_sizes >= before.of_all_sizes + 8; }));
  CHECK(log.texts.empty());
}

TEST_CASE("calls below the least size are native by what merges report") {
  const communicator world = communicator::duplicate_of_world();
  mpi::configure(world, "min_bytes", "4KiB");
  mpi::configure(world, "policy", "round_robin");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const slow_clock clock;
  for (int form = 0; form < num_forms; ++form) {
    CAPTURE(form);
    for (int call = 0; call < 40; ++call) {
      REQUIRE(run(
          form, world, [](int, int, int) { return 3; }, call));
      CHECK(mpi::last_arm(world) == "native");
    }
    bool is_tuned = false;  // equal on all ranks
    for (int call = 0; call < 3000 && world.size() > 1 && !is_tuned; ++call) {
      REQUIRE(run(
          form, world, [](int, int, int) { return 3000; }, call));
      is_tuned = mpi::last_arm(world) != "native";
    }
    CHECK(is_tuned == (world.size() > 1));
  }
}

TEST_CASE("neighbours whose first message is below the least size stay native") {
  for (const int count : {3, 3000}) {
    CAPTURE(count);
    int size = 1, periodic = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &made);
    const communicator ring(made);
    MPI_Comm_set_name(ring, "ring");
    mpi::configure(ring, "min_bytes", "4KiB");
    mpi::configure(ring, "policy", "round_robin");
    const int counts[2] = {count, count}, displacements[2] = {0, count};
    const std::vector<int> sent(std::size_t(2 * count), ring.rank());
    std::vector<int> received(sent.size());
    for (int call = 0; call < 30; ++call)
      REQUIRE(mpi::neighbor_all_to_allv(sent.data(), counts, displacements, MPI_INT,
                                        received.data(), counts, displacements, MPI_INT,
                                        ring) == MPI_SUCCESS);
    CHECK(received.front() == (ring.rank() + size - 1) % size);
    CHECK(received.back() == (ring.rank() + 1) % size);
    if (ring.rank() > 0 || size < 2) continue;
    const std::vector<select::context_statistics> all = process::get()->statistics().contexts;
    CHECK((count == 3000) == std::ranges::any_of(all, [](const select::context_statistics& c) {
            return c.communicator == "ring";
          }));
  }
}

TEST_CASE("statistics tell the sizes that merges have reported") {
  const communicator world = communicator::duplicate_of_world();
  MPI_Comm_set_name(world, "told");
  mpi::configure(world, "policy", "round_robin");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  // Only the last rank has data for the root, and more than for the other ranks.
  const int last = world.size() - 1;
  const lengths n = [&](int from, int, int) { return from == last ? 1000 : 0; };
  for (int call = 0; call < 60; ++call) REQUIRE(run(0, world, n, call));
  if (world.rank() > 0 || world.size() < 2) return;
  for (const auto& c : process::get()->statistics().contexts) {
    if (c.communicator != "told") continue;
    CHECK(c.mean_bytes.value() == Approx(4000));
    CHECK(c.from_bytes == 4000);
    CHECK(c.to_bytes == 4000);
    CHECK(c.first_bytes == 4000);
  }
}
