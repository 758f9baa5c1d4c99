// SPDX-License-Identifier: BSL-1.0
//
// Collectives over tcp rails of this machine: large messages, next to messages of the user, on
// several communicators; rails that a rank lacks, and rails that break. any_collective.cpp tests
// the results of every algorithm over rails.
#include "lib/rails/transport_rail.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "railpass/rails.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"

#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::records;

namespace {

constexpr const char* two_rails = "127.0.0.2,127.0.0.3";

std::int64_t sent_bytes(MPI_Comm comm) {
  int p = 1;
  MPI_Comm_size(comm, &p);
  std::int64_t sum = 0;
  for (int peer = 0; peer < p; ++peer)
    for (const mpi::rail_status& r : mpi::rails_to(peer, comm)) sum += r.sent_bytes;
  return sum;
}

// Rails of their own for channels of the user and of collectives, without calls that are tuned.
struct own_rails {
  std::shared_ptr<open_transport> over;
  rail_channel of_user;
  transport_rail of_collectives;

  explicit own_rails(MPI_Comm comm, std::vector<int> all)
      : over(opened(comm)),
        of_user(over, comm, 1, all),
        of_collectives(std::make_shared<rail_channel>(over, MPI_COMM_NULL, 2, all)) {}

  static std::shared_ptr<open_transport> opened(MPI_Comm comm) {
    mpi_tags tags;
    MPI_Comm_dup(comm, &tags.comm);
    return std::make_shared<open_transport>(comm, tags, two_rails, "auto", 0);
  }
  // Polls for the next message of collectives; false: an error.
  bool wait() {
    std::array<rail_token, 1> ended;
    int found = 0;
    while (found == 0) found = of_collectives.poll(ended);
    return found > 0;
  }
};

std::vector<int> ranks_of(const communicator& all) {
  std::vector<int> ranks(std::size_t(all.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

int value(int rank, int i) { return (rank + 1) * 1000003 + i * 7; }

void broadcast_is_right(MPI_Comm comm, int n, int root, const char* arm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::vector<int> data(std::size_t(n), -1);
  if (rank == root)
    for (int i = 0; i < n; ++i) data[std::size_t(i)] = value(root, i);
  CHECK(mpi::broadcast(data.data(), n, MPI_INT, root, comm, collect(use(arm))) == MPI_SUCCESS);
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += data[std::size_t(i)] != value(root, i);
  CHECK(wrong == 0);
}

void all_to_all_is_right(MPI_Comm comm, int n, const char* arm) {
  int rank = 0, p = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &p);
  std::vector<int> out(std::size_t(n * p)), in(std::size_t(n * p), -1);
  for (int i = 0; i < n * p; ++i) out[std::size_t(i)] = value(rank, i);
  CHECK(mpi::all_to_all(out.data(), n, MPI_INT, in.data(), n, MPI_INT, comm, collect(use(arm))) ==
        MPI_SUCCESS);
  int wrong = 0;
  for (int from = 0; from < p; ++from)
    for (int i = 0; i < n; ++i) wrong += in[std::size_t(from * n + i)] != value(from, rank * n + i);
  CHECK(wrong == 0);
}

// Whether it is a connection over 127.0.0.2.
bool is_connection(int fd) {
  sockaddr_in peer{};
  socklen_t length = sizeof peer;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
         peer.sin_family == AF_INET && peer.sin_addr.s_addr == htonl(0x7f000002);
}
int open_connections() {
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd) found += is_connection(fd) ? 1 : 0;
  return found;
}
// Breaks the connections of this process; returns whether there were any.
bool break_connections() {
  bool found = false;
  for (int fd = 0; fd < 1024; ++fd)
    if (is_connection(fd)) found |= shutdown(fd, SHUT_RDWR) == 0;
  return found;
}

}  // namespace

TEST_CASE("large messages of collectives, between the user's own over the same rails") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), me = world.rank(), right = (me + 1) % p, left = (me + p - 1) % p;
  mpi::configure(world, "rails", two_rails);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  mpi::open_rails(world, {.rails = two_rails, .strategy = {}});  // the rails of the collectives
  std::vector<char> out(300000, char(me)), in(300000), early(10);
  const mpi::message_part to{in.data(), in.size()}, from{out.data(), out.size()};
  mpi::message receive = mpi::irecv({&to, 1}, MPI_ANY_SOURCE, MPI_ANY_TAG, world);
  broadcast_is_right(world, 700001, 0, "scatter_allgather_ring");
  mpi::message send = mpi::isend({&from, 1}, right, 3, world);
  broadcast_is_right(world, 700001, p - 1, "pipeline+segment_bytes=64KiB");
  broadcast_is_right(world, 200000, p / 2, "binomial");
  all_to_all_is_right(world, 70001, "pairwise");
  all_to_all_is_right(world, 30000, "scattered");
  receive.wait();
  send.wait();
  CHECK(receive.source() == left);
  CHECK(receive.tag() == 3);
  CHECK(in == std::vector<char>(300000, char(left)));
  mpi::close_rails(world);  // the collectives keep their rails
  CHECK_THROWS_AS(mpi::irecv({&to, 1}, left, 3, world), railpass::error);
  all_to_all_is_right(world, 70001, "pairwise");
  if (p > 1) CHECK(sent_bytes(world) > 3 * 70001 * 4);
}

TEST_CASE("the user's messages end by themselves, small and large, and no later one meets them") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), me = world.rank(), right = (me + 1) % p, left = (me + p - 1) % p;
  const bool with_collectives = GENERATE(true, false);
  if (with_collectives) {
    mpi::configure(world, "rails", two_rails);
    REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  }
  std::vector<char> large(1 << 20, 'l');
  for (char round = 'a'; round < 'd'; ++round) {
    mpi::open_rails(world, {.rails = two_rails, .strategy = {}});
    char sent = round, got = '?';
    const mpi::message_part small{&sent, 1}, in{&got, 1}, much{large.data(), large.size()};
    if (round == 'c') {
      mpi::message m = mpi::irecv({&in, 1}, left, 0, world);
      mpi::isend({&small, 1}, right, 0, world).wait();
      m.wait();
      CHECK(got == round);
    } else {  // messages without a receive
      mpi::isend({&small, 1}, right, 0, world).wait();
      mpi::isend({&much, 1}, right, 9, world);
    }
    mpi::close_rails(world);
    if (with_collectives) all_to_all_is_right(world, 1000, "pairwise");
  }
  if (with_collectives && p > 1) CHECK(mpi::rails_to(right, world).size() == 2);
}

TEST_CASE("collectives over the rails that the user has opened, and on several communicators") {
  const communicator first = communicator::duplicate_of_world();
  const communicator second = communicator::duplicate_of_world();
  const communicator plain = communicator::duplicate_of_world();
  mpi::open_rails(first, {.rails = "127.0.0.4", .strategy = "aggregate"});
  mpi::configure(first, "rails", two_rails);
  mpi::configure(second, "rails", "mpi,127.0.0.2");
  for (const MPI_Comm comm : {MPI_Comm(first), MPI_Comm(second), MPI_Comm(plain)})
    REQUIRE(mpi::start_tuning(comm) == MPI_SUCCESS);
  for (int k = 0; k < 5; ++k)
    for (const MPI_Comm comm : {MPI_Comm(second), MPI_Comm(plain), MPI_Comm(first)})
      all_to_all_is_right(comm, k < 3 ? 10 : 20000, "pairwise");
  CHECK(mpi::rails_to(0, first).size() == 1);
  CHECK_THROWS_AS(mpi::rails_to(0, plain), railpass::error);
  if (first.size() > 1) {
    CHECK(mpi::rails_to(0, second).size() == 2);
    CHECK(sent_bytes(first) > 0);
  }
}

TEST_CASE("who waits for rails lets MPI advance: others may wait for that") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), me = world.rank();
  mpi::configure(world, "rails", two_rails);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  if (p == 1) return;
  // Larger than MPI sends before its receiver is there. Rank 0 can end the broadcast only after
  // rank 1, which starts the broadcast when the whole message has arrived.
  std::vector<int> large(4 << 20, me == 0 ? 7 : 0);
  const int n = int(large.size());
  MPI_Request request = MPI_REQUEST_NULL;
  if (me == 0) MPI_Isend(large.data(), n, MPI_INT, 1, 0, world, &request);
  if (me == 1) {
    MPI_Recv(large.data(), n, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
    CHECK(large == std::vector<int>(large.size(), 7));
  }
  broadcast_is_right(world, 1000000, 0, "linear");
  if (me == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

TEST_CASE("where a rank has not got the rails all use MPI's messages, and say why") {
  const records log;
  const communicator missing = communicator::duplicate_of_world();
  const communicator unnamed = communicator::duplicate_of_world();
  const int p = missing.size();
  const bool last = missing.rank() == p - 1;
  mpi::configure(missing, "rails", last ? "127.0.0.2,nosuch0" : two_rails);
  if (!last) mpi::configure(unnamed, "rails", two_rails);
  for (const MPI_Comm comm : {MPI_Comm(missing), MPI_Comm(unnamed)}) {
    REQUIRE(mpi::start_tuning(comm) == MPI_SUCCESS);
    broadcast_is_right(comm, 50000, 0, "binomial");
    CHECK_THROWS_AS(mpi::rails_to(0, comm), railpass::error);
    CHECK(mpi::last_arm(comm) == (p > 1 ? "binomial" : "native"));
  }
  if (p > 1) {
    CHECK(log.any_has("nosuch0"));
    CHECK(log.any_has("RAILPASS_RAILS is set on some ranks only"));
  }
}

TEST_CASE("a rank that misses a call over rails is found out, and results stay right") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const records log;
  mpi::configure(world, "rails", two_rails);
  mpi::configure(world, "policy", "native");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  int one = 1;
  if (world.rank() == 0)
    MPI_Bcast(&one, 1, MPI_INT, 0, world);
  else
    mpi::broadcast(&one, 1, MPI_INT, 0, world, collect(use("native")));
  for (int call = 0; call < 40; ++call) {
    int sum = 0;
    CHECK(mpi::all_reduce(&one, &sum, 1, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    CHECK(sum == world.size());
  }
}

TEST_CASE("after a connection breaks calls fail, or have their own data, and nobody hangs") {
  // A rank that has failed also makes the calls that compare results.
  for (const auto& [arm, verify] :
       {std::pair("linear", "off"), {"pipeline+segment_bytes=64KiB", "off"}, {"linear", "on"}}) {
    CAPTURE(arm, verify);
    const records log;
    const communicator world = communicator::duplicate_of_world();
    if (world.size() == 1) return;                                  // without connections
    MPI_Comm_set_name(world, (std::string(arm) + verify).c_str());  // each message is logged once
    mpi::configure(world, "rails", two_rails);
    mpi::configure(world, "verify", verify);
    REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
    int failures = 0, native = 0, call = 0;
    // Ranks may see the failure in different calls. All are native from the same call on; otherwise
    // they would wait for each other, or get data of another call.
    for (; native < 3 && call < 100000; ++call) {
      if (call == 20 && world.rank() == world.size() - 1) CHECK(break_connections());
      std::vector<int> data(call < 40 ? 1 << 18 : 1 << 8, world.rank() == 0 ? call : -1);
      const int code =
          mpi::broadcast(data.data(), int(data.size()), MPI_INT, 0, world, collect(use(arm)));
      if (code == MPI_SUCCESS) CHECK(data == std::vector<int>(data.size(), call));
      failures += code != MPI_SUCCESS;
      native = code == MPI_SUCCESS && mpi::last_arm(world) == "native" ? native + 1 : 0;
    }
    CHECK(failures > 0);
    CHECK(native == 3);
    int ends[2] = {call, -call};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT, MPI_MAX, world);
    CHECK(ends[0] == -ends[1]);
    CHECK((log.any_has("have failed") || log.any_has("another rank has failed")));
  }
}

TEST_CASE("who frees a communicator whose collectives go over rails waits for nobody") {
  int connections = -1;
  for (int round = 0; round < 5; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int rank = 0, p = 1, freed = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &p);
    mpi::configure(comm, "rails", "mpi,127.0.0.2");
    REQUIRE(mpi::start_tuning(comm) == MPI_SUCCESS);
    broadcast_is_right(comm, 100000, 0, "pipeline+segment_bytes=64KiB");
    all_to_all_is_right(comm, 100, "pairwise");
    if (rank > 0) MPI_Recv(&freed, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    for (int to = 1; rank == 0 && to < p; ++to) MPI_Send(&freed, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    // All communicators use the same rails.
    const int now = open_connections();
    if (round > 0) CHECK(now == connections);
    connections = now;
  }
}

TEST_CASE("rails that broke while nobody used them are opened anew") {
  for (int round = 0; round < 3; ++round) {
    const communicator world = communicator::duplicate_of_world();
    mpi::configure(world, "rails", two_rails);
    REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
    all_to_all_is_right(world, 1000, "pairwise");
    if (world.size() > 1) CHECK(mpi::last_arm(world) == "pairwise");
    MPI_Barrier(world);  // all ranks have ended the call
    if (world.size() > 1 && world.rank() == world.size() - 1) CHECK(break_connections());
  }
}

TEST_CASE("a message of a collective ends when it has left, also behind messages without credit") {
  const communicator world = communicator::duplicate_of_world();
  const int me = world.rank();
  if (world.size() == 1) return;
  own_rails rails(world, ranks_of(world));
  std::vector<std::byte> data(4096), got(4096);
  std::array<rail_token, 1> ended;
  constexpr int count = 400;  // of which the credit is for 242
  MPI_Request meeting = MPI_REQUEST_NULL;
  if (me == 0) {
    std::vector<transport::operation_ptr> sends;
    for (int k = 0; k < count; ++k)
      sends.push_back(rails.of_user.send(1, 1, {{data.data(), data.size()}}));
    CHECK(rails.of_collectives.post_send(1, 0, data.data(), 100, 1) == post_result::pending);
    // Sends of the user end early once rank 1 wants a message that has not been started.
    while (!sends.back()->done()) REQUIRE(rails.of_collectives.poll(ended) == 0);
    CHECK(rails.of_collectives.poll(ended) == 0);
    MPI_Ibarrier(world, &meeting);
    CHECK(rails.wait());
    rails.of_user.send(1, 9, {{data.data(), data.size()}});
  } else if (me == 1) {
    const auto last = rails.of_user.receive(0, 9, {{got.data(), got.size()}});
    MPI_Ibarrier(world, &meeting);
    rails.over->wait_for(meeting);
    CHECK(rails.of_collectives.post_receive(0, 0, got.data(), 100, 1) == post_result::pending);
    CHECK(rails.wait());
    while (!last->done()) REQUIRE(rails.of_collectives.poll(ended) == 0);
  } else {
    MPI_Ibarrier(world, &meeting);
  }
  rails.over->wait_for(meeting);
  rails.over->close();
}

TEST_CASE("a message longer than its receive is named on both ranks by what each of them does") {
  const communicator world = communicator::duplicate_of_world();
  const int me = world.rank();
  if (world.size() == 1) return;
  own_rails rails(world, ranks_of(world));
  std::vector<std::byte> data(100000);
  if (me == 0) {
    rails.of_collectives.post_send(1, 0, data.data(), 100000, 1);
    CHECK(!rails.wait());
    CHECK(rails.of_collectives.unlike() ==
          "rank 1 takes 50000 bytes of the 100000 that this rank sends");
  } else if (me == 1) {
    rails.of_collectives.post_receive(0, 0, data.data(), 50000, 1);
    CHECK(!rails.wait());
    CHECK(rails.of_collectives.unlike() == "rank 0 sent more where this rank expects 50000 bytes");
  }
  if (me < 2) CHECK(rails.of_collectives.error_code() == MPI_ERR_TRUNCATE);
  rails.over->close();
}

// The last test: afterwards no call is tuned.
TEST_CASE("a rank at whose end others still send over rails waits for none, and disturbs none") {
  static MPI_Comm all = MPI_COMM_NULL, others = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  int rank = 0, p = 1;
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &p);
  MPI_Comm_split(all, rank == 0 ? 0 : 1, rank, &others);
  for (const MPI_Comm comm : {all, others}) {
    mpi::configure(comm, "rails", "127.0.0.2,mpi");
    REQUIRE(mpi::start_tuning(comm) == MPI_SUCCESS);
  }
  broadcast_is_right(all, 100000, 0, "pipeline+segment_bytes=64KiB");
  int ended = 1;
  if (rank > 0) MPI_Recv(&ended, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int round = 0; rank > 0 && round < 20; ++round) {
    all_to_all_is_right(others, 1000, "pairwise");
    if (p > 2) CHECK(mpi::last_arm(others) == "pairwise");
  }
  process::end();
  for (int to = 1; rank == 0 && to < p; ++to) MPI_Send(&ended, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
}
