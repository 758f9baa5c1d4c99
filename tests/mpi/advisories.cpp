// SPDX-License-Identifier: BSL-1.0
//
// A site's file of advisories, which rank 1 alone has: all ranks heed it.
#include "lib/files/files.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/base/log.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/sums.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::sums;

namespace {

// May be called before MPI_Init.
std::string library_here() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, ' ');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return knowledge::release_of(text).name;
}

// As users would, before MPI begins: all ranks name a file, and rank 1 alone has one.
const std::string path = [] {
  std::string name = "/tmp/railpass-advisories-" + std::to_string(getpid()) + ".json";
  setenv("RAILPASS_ADVISORIES", name.c_str(), 1);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (!rank) rank = std::getenv("PMI_RANK");
  if (!rank || std::string(rank) != "1") return name;
  const auto fault = [](const std::string& library, const char* collective, const char* avoid) {
    return knowledge::advisory{.library = library,
                               .collective = collective,
                               .effect = "is wrong",
                               .avoid = avoid,
                               .link = "https://example.org"};
  };
  const std::string here = library_here(), other = here == "MPICH" ? "Open MPI" : "MPICH";
  files::write_text(name,
                    files::to_json(knowledge::advisory_list{{fault(here, "all_reduce", "native"),
                                                             fault(here, "broadcast", "binomial"),
                                                             fault(other, "barrier", "native"),
                                                             {.library = here,
                                                              .collective = "scan",
                                                              .effect = "is wrong",
                                                              .link = "https://example.org"}}}));
  return name;
}();

std::vector<std::string> said;

}  // namespace

TEST_CASE("A file that one rank alone has holds on all ranks") {
  const communicator comm = communicator::duplicate_of_world();
  set_log_handler([](const char* text, void*) { said.emplace_back(text); }, nullptr);
  mpi::configure(comm, "use", "broadcast:binomial");
  mpi::start_tuning(comm);
  std::remove(path.c_str());
  if (comm.size() == 1) return;
  CHECK(process::get()->exclusions().all().size() == 2);
  for (int again = 0; again < 50; ++again) {
    REQUIRE(sums(comm, 1));
    CHECK(mpi::last_arm(comm) != "native");
    int value = comm.rank() == 0 ? again : -1;
    REQUIRE(mpi::broadcast(&value, 1, MPI_INT, 0, comm) == MPI_SUCCESS);
    CHECK(value == again);
    CHECK(mpi::last_arm(comm) == "native");
  }
}

TEST_CASE("A known fault is said once, by the leader that knows of it") {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;
  MPI_Comm rank_1_first = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank == 1 ? -1 : rank, &rank_1_first);
  const communicator comm(rank_1_first);
  mpi::start_tuning(comm);
  for (int again = 0; again < 30; ++again) {
    int in = 1, out = 0;
    REQUIRE(mpi::scan(&in, &out, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  }
  const auto tells = [](const std::string& text) {
    return text.starts_with("known fault: scan of ") && text.ends_with("(https://example.org)");
  };
  CHECK(std::ranges::count_if(said, tells) == (rank == 1 ? 1 : 0));
}
