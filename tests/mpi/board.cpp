// SPDX-License-Identifier: BSL-1.0
//
// The ranks of a host show what they send over rails while they do: all on one board, which goes
// when the rails do.
#include "lib/rails/board.hpp"

#include "railpass/rails.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::records;

namespace {

const mpi::rails_options two_rails{.rails = "127.0.0.2,127.0.0.3", .strategy = {}};

// Other programs may have theirs at the same time.
std::optional<found_board> my_board() {
  for (found_board& b : find_boards().boards)
    if (std::ranges::any_of(b.rails, [](const posted_rail& r) { return r.pid == getpid(); }))
      return std::move(b);
  return std::nullopt;
}

// Every rank sends some to the next one.
void shift(const communicator& world, std::size_t bytes) {
  const int p = world.size(), me = world.rank();
  std::vector<char> out(bytes, char(me)), in(bytes);
  const mpi::message_part to{in.data(), in.size()}, from{out.data(), out.size()};
  mpi::message receive = mpi::irecv({&to, 1}, (me + p - 1) % p, 0, world);
  mpi::message send = mpi::isend({&from, 1}, (me + 1) % p, 0, world);
  receive.wait();
  send.wait();
  CHECK(in == std::vector<char>(bytes, char((me + p - 1) % p)));
}

bool on_all_ranks(const communicator& world, bool here) {
  int all = here ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, world);
  return all != 0;
}

}  // namespace

TEST_CASE("all ranks of a host are on one board while their rails are open, and nobody after") {
  const communicator world = communicator::duplicate_of_world();
  const auto p = std::size_t(world.size());
  mpi::open_rails(world, two_rails);
  MPI_Barrier(world);
  const auto begun = my_board();
  REQUIRE(on_all_ranks(world, begun.has_value()));
  std::set<std::int64_t> processes;
  for (const posted_rail& r : begun->rails) processes.insert(r.pid);
  CHECK(begun->num_ranks == world.size());
  CHECK(begun->rails.size() == 2 * p);
  CHECK(begun->rails[0].rail == "lo (127.0.0.2)");
  CHECK(begun->rails[1].rail == "lo (127.0.0.3)");
  CHECK(processes.size() == p);
  // They post every few milliseconds; the watchdog ends what never comes.
  const auto is_shown = [&] {
    const auto now = my_board();
    if (p == 1) return now.has_value();  // it has nobody to send to
    if (!now || now->rails.size() != 2 * p) return false;
    for (std::size_t rank = 0; rank < p; ++rank)
      if (now->rails[2 * rank].sent_bytes + now->rails[2 * rank + 1].sent_bytes == 0) return false;
    return true;
  };
  for (bool shown = false; !shown;) {
    shift(world, 1 << 20);
    shown = on_all_ranks(world, is_shown());
  }
  mpi::close_rails(world);
  MPI_Barrier(world);
  CHECK(!my_board());
}

TEST_CASE("where shared memory cannot be used messages arrive as before, and the log says why") {
  const records log;
  const communicator world = communicator::duplicate_of_world();
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit nothing{.rlim_cur = 0, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &nothing);
  mpi::open_rails(world, two_rails);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(!my_board());
  CHECK(log.any_has("not shown what the rails carry"));
  shift(world, 100000);
  mpi::close_rails(world);
}
