// SPDX-License-Identifier: BSL-1.0
//
// In MPI_Finalize rank 0 learns from all ranks which host comes late. TEST_HOSTS has the hosts; the
// ranks of the host with the last letter are late.
#include "lib/files/files.hpp"
#include "lib/runtime/ledger_board.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/named_hosts.hpp"
#include "support/scratch_directory.hpp"
#include "support/stopped_clock.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

std::string hosts() {
  const char* const given = std::getenv("TEST_HOSTS");
  return given ? given : "";
}

int threads() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  return provided;
}

// The timed calls that this process shows on a board; empty: it shows nothing.
std::optional<std::int64_t> shown_calls() {
  for (const found_ledgers& b : find_ledger_boards().boards)
    for (const posted_ledger& l : b.ledgers)
      if (l.pid == getpid()) return l.sums.calls;
  return std::nullopt;
}

}  // namespace

TEST_CASE("the statistics have the hosts, and the host that comes late") {
  const scratch_directory folder;
  const std::string dump = folder.file("stats.json");
  setenv("RAILPASS_STATS", dump.c_str(), 1);
  setenv("RAILPASS_POLICY", "round_robin", 1);  // times all calls
  setenv("RAILPASS_HOST_NAMES", "1", 1);
  const std::string of_rank = hosts();
  const bool has_hosts = !of_rank.empty() && threads() != MPI_THREAD_MULTIPLE;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    const communicator comm = communicator::duplicate_of_world();
    test::stopped_clock clock;
    mpi::start_tuning(comm);
    const bool is_late = !of_rank.empty() && of_rank[std::size_t(rank)] == of_rank.back();
    for (int i = 0; i < 100; ++i) {
      if (is_late) clock.pass(5e-3);
      int one = 1, sum = 0;
      CHECK(mpi::all_reduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    }
    CHECK(shown_calls().has_value() == has_hosts);
    CHECK(shown_calls().value_or(50) >= 50);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // rank 0 waits for a limited time
  process::end();
  MPI_Barrier(MPI_COMM_WORLD);  // the last rank removes the board
  CHECK(!shown_calls());
  if (rank != 0) return;
  const std::vector<select::host_statistics> found = files::read_statistics(dump).hosts;
  if (!has_hosts) {
    CHECK(found.empty());
    return;
  }
  std::string names;
  for (const char host : of_rank)
    if (names.find(host) == std::string::npos) names += host;
  REQUIRE(found.size() == names.size());
  for (std::size_t h = 0; h < found.size(); ++h) {
    CHECK(found[h].host == int(h));
    CHECK(found[h].name == std::string("host") + names[h]);
    CHECK(found[h].first_rank == int(of_rank.find(names[h])));
    CHECK(found[h].num_ranks == std::ranges::count(of_rank, names[h]));
    REQUIRE(found[h].late_s);
    CHECK(found[h].late_s->is_named == (names[h] == of_rank.back()));
    if (names.size() == 2) CHECK(!found[h].link_factor);
  }
}
