// SPDX-License-Identifier: BSL-1.0
//
// Knowledge of a run, and how it spreads while the run continues: to a file, to rank 0 of the
// world, and to other communicators.
#include "lib/runtime/process.hpp"
#include "lib/store/quarantine.hpp"
#include "lib/store/store.hpp"
#include "railpass/function_set.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/scratch_directory.hpp"
#include "support/stopped_clock.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::stopped_clock;

namespace {

// Set before railpass reads its settings, and removed after everything else.
const struct own_store {
  own_store() {
    setenv("RAILPASS_KNOWLEDGE", folder.path().c_str(), 1);
    setenv("RAILPASS_POLICY", "round_robin", 1);  // synchronises all the time
  }
  scratch_directory folder;
} mine;

void call_all_reduce(MPI_Comm comm, int count) {
  std::vector<int> in(std::size_t(count), 1), out(in.size());
  mpi::all_reduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm);
}

// The knowledge in the files about all_reduce on `num_ranks` ranks; waits for the writing thread.
std::optional<knowledge::experience> in_files(int num_ranks, const std::string& kind) {
  fingerprint here;  // matches every machine
  for (int look = 0; look < 500; ++look) {
    const store::known found = store::read({.own = mine.folder.path(), .others = {}}, here, 1000);
    CHECK(found.problems.empty());
    for (const knowledge::experience& e : found.contexts)
      if (e.of.collective == "all_reduce" && e.of.num_ranks == num_ranks && e.of.kind == kind)
        return e;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return std::nullopt;
}

bool knows_native(const knowledge::experience& e) {
  return std::ranges::find(e.arms, "native", &knowledge::arm_experience::arm) != e.arms.end();
}

// Continues for some seconds with enough calls for synchronisations to start and finish. Leaders
// then store or share their knowledge.
void go_on(stopped_clock& clock, MPI_Comm comm, double seconds, int count = 100) {
  clock.pass(seconds);
  for (int i = 0; i < 64; ++i) clock.pass_in(1e-3, [&] { call_all_reduce(comm, count); });
}

}  // namespace

namespace {
std::atomic<bool> links_wait{false};
std::atomic<int> num_links{0};
}  // namespace

// In place of the system's, as on a file system that is slow.
extern "C" int link(const char* from, const char* to) noexcept {
  while (links_wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const int result = ::linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
  ++num_links;
  return result;
}

TEST_CASE("a quarantine that takes long to write is kept, or withdrawn after it is kept") {
  const bool withdraws = GENERATE(false, true);
  const scratch_directory folder;
  const knowledge::quarantined q{.mpi_library = "Some MPI 1.0",
                                 .railpass_version = "0.2.0",
                                 .found_at = "2026-01-31T12:00:00Z",
                                 .collective = "all_gather",
                                 .algorithm = "ring",
                                 .variant = "ring",
                                 .num_ranks = 4,
                                 .ranks_per_node = 2,
                                 .bytes = 4096};
  const auto num_kept = [&] {
    return store::quarantine({.own = folder.path(), .others = {}}, {}).files.size();
  };
  kept_knowledge kept(folder.path());
  std::vector<std::string> said;
  const auto say = [&](const std::string& problem) { said.push_back(problem); };
  constexpr double enough_s = 60;
  links_wait = true;
  num_links = 0;
  kept.keep_quarantine(q, false, say);
  CHECK(num_kept() == 0);
  if (withdraws) kept.keep_quarantine(q, true, say);
  links_wait = false;
  CHECK(kept.end({}, enough_s).empty());
  CHECK(num_links == 1);
  CHECK(num_kept() == (withdraws ? 0 : 1));
  CHECK(said.empty());
}

TEST_CASE("what a run has learnt so far is kept while it goes on") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  stopped_clock clock;
  mpi::start_tuning(world);
  go_on(clock, world, 1);
  if (world.rank() == 0)
    CHECK(store::read({.own = mine.folder.path(), .others = {}}, {}, 1000).contexts.empty());
  go_on(clock, world, 10);
  if (world.rank() == 0) {
    const auto kept = in_files(world.size(), "part");
    CHECK(kept);
    CHECK((kept && kept->runs == 1 && kept->of.bytes == 400));
    CHECK((kept && knows_native(*kept)));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("what other leaders learn reaches the world's rank 0") {
  mpi::start_tuning(MPI_COMM_WORLD);  // creates an internal communicator of all ranks
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 4) return;
  MPI_Comm half = MPI_COMM_NULL;
  const bool first = world.rank() < world.size() / 2 - 1;  // its size differs from the second one's
  MPI_Comm_split(MPI_COMM_WORLD, first ? 0 : 1, 0, &half);
  const communicator part(half);
  stopped_clock clock;
  if (!first) {
    mpi::start_tuning(part);
    go_on(clock, part, 0);
    go_on(clock, part, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // Rank 0 has received the knowledge and stores it.
  mpi::start_tuning(world);
  go_on(clock, world, 10000);
  if (world.rank() == 0) {
    const auto kept = in_files(world.size() - (world.size() / 2 - 1), "part");
    CHECK((kept && knows_native(*kept)));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("communicators that are alike know what one of them has learnt") {
  const communicator first = communicator::duplicate_of_world(),
                     second = communicator::duplicate_of_world();
  if (first.size() < 2) return;
  constexpr int count = 5000;  // known to no other process
  stopped_clock clock;
  const auto reason = [&](const communicator& comm, const std::string& name) {
    MPI_Comm_set_name(comm, name.c_str());
    mpi::start_tuning(comm);
    go_on(clock, comm, 0, count);
    for (const auto& context : process::get()->statistics().contexts)
      if (context.communicator == name) return context.reason;
    return std::string();
  };
  const std::string alone = reason(first, "the first one"),
                    later = reason(second, "the second one");
  if (first.rank() != 0) return;
  CHECK_FALSE(alone.empty());
  CHECK(alone.find("earlier runs") == std::string::npos);
  CHECK(later.find("earlier runs") != std::string::npos);
}

TEST_CASE("a set knows what near features took on a communicator that is gone") {
  stopped_clock clock;
  const auto is_told = [&](std::int64_t feature) {
    const communicator world = communicator::duplicate_of_world();
    function_set<void()> set("mesh", world, {},
                             {.features = {feature}, .policy = "knowledge_gradient"});
    set.add("first", [&] { clock.pass(2e-3); });
    set.add("second", [&] { clock.pass(1e-3); });
    for (int call = 0; call < 60; ++call) set();
    for (const auto& c : process::get()->statistics().contexts)
      if (c.collective == "mesh" && c.operation == "set+features=" + std::to_string(feature))
        return std::ranges::any_of(c.arms, [](const auto& a) { return a.prior.has_value(); });
    return false;
  };
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK_FALSE(is_told(1000));
  CHECK(is_told(1100) == (rank == 0));
  CHECK_FALSE(is_told(1 << 20));
}

TEST_CASE("a set with the policy native runs its first version alone, also against knowledge") {
  stopped_clock clock;
  int others = 0;
  const auto play = [&](const std::string& policy, double first_s) {
    const communicator world = communicator::duplicate_of_world();
    function_set<void()> set("kept_first", world, {}, {.policy = policy});
    set.add("first", [&] { clock.pass(first_s); });
    set.add("second", [&] {
      ++others;
      clock.pass(1e-3);
    });
    for (int call = 0; call < 60; ++call) set();
  };
  play("knowledge_gradient", 2e-3);
  CHECK(std::exchange(others, 0) > 0);
  play("native", 20e-3);
  CHECK(others == 0);
}
