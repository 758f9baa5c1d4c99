// SPDX-License-Identifier: BSL-1.0
//
// Messages over several rails of this machine, tcp and MPI's own, between real processes.
#include "railpass/rails.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"

#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <numeric>
#include <random>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace railpass;
using railpass::mpi::message_part;

namespace {

const mpi::rails_options two_rails{.rails = "127.0.0.2,127.0.0.3", .strategy = {}};

std::vector<char> pattern(std::size_t n, int seed) {
  std::vector<char> b(n);
  for (std::size_t i = 0; i < n; ++i)
    b[i] = char((i * 131 + (i >> 8) * 17 + std::size_t(seed) * 71) >> 1);
  return b;
}

std::vector<message_part> whole(std::vector<char>& b) { return {{b.data(), b.size()}}; }

bool is_of_two_rails(int fd) {
  sockaddr_in peer{};
  socklen_t length = sizeof peer;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
         peer.sin_family == AF_INET &&
         (peer.sin_addr.s_addr == htonl(0x7f000002) || peer.sin_addr.s_addr == htonl(0x7f000003));
}

// Open connections of this process over the two rails, and those that a child program would
// inherit.
int open_sockets() {
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd) found += is_of_two_rails(fd) ? 1 : 0;
  return found;
}
int inherited_sockets() {
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd)
    found += is_of_two_rails(fd) && (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0 ? 1 : 0;
  return found;
}

std::int64_t resident_bytes() {
  std::ifstream pages("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  pages >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("every rank sends to every rank, itself included, sizes of all kinds") {
  const communicator world = communicator::duplicate_of_world();
  const std::string over_mpi = "mpi,127.0.0.2", two_streams = "127.0.0.2,127.0.0.2";
  for (const auto& [names, strategy] : {std::pair{two_rails.rails, "auto"},
                                        {two_rails.rails, "split"},
                                        {two_rails.rails, "aggregate"},
                                        {two_rails.rails, "greedy"},
                                        {two_rails.rails, "weighted"},
                                        {two_rails.rails, "equal"},
                                        {two_streams, "auto"},
                                        {over_mpi, "auto"},
                                        {over_mpi, "equal"},
                                        {"mpi", "auto"}}) {
    mpi::open_rails(world, {.rails = names, .strategy = strategy});
    const int p = world.size(), me = world.rank();
    const std::vector<std::size_t> sizes{0, 1, 39, 4096, 16384, 16385, 100000, 1 << 20};
    std::vector<std::vector<char>> sent, received;
    std::vector<mpi::message> all;
    for (int peer = 0; peer < p; ++peer)
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        sent.push_back(pattern(sizes[k], me * 100 + peer));
        received.emplace_back(sizes[k]);
      }
    for (int peer = 0; peer < p; ++peer)
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        const std::size_t i = std::size_t(peer) * sizes.size() + k;
        // Half of the receives come after the sends.
        if (k % 2 == 0)
          all.push_back(mpi::irecv(whole(received[i]), peer, 5, world));
        else
          all.push_back(mpi::irecv(whole(received[i]), peer, 6, world));
        all.push_back(mpi::isend(whole(sent[i]), peer, k % 2 == 0 ? 5 : 6, world));
      }
    for (mpi::message& m : all) m.wait();
    for (int peer = 0; peer < p; ++peer)
      for (std::size_t k = 0; k < sizes.size(); ++k)
        CHECK(received[std::size_t(peer) * sizes.size() + k] == pattern(sizes[k], peer * 100 + me));
    if (p > 1) {
      const auto rails = mpi::rails_to((me + 1) % p, world);
      CHECK(rails.size() == (names == "mpi" ? 1 : 2));
      std::int64_t total = 0;
      for (const mpi::rail_status& r : rails) total += r.sent_bytes;
      CHECK(total == std::int64_t(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0})));
      if (std::string(strategy) == "equal") CHECK(rails[1].sent_bytes >= (1 << 19));
    }
    mpi::close_rails(world);
  }
}

TEST_CASE("any source and any tag, in the order of each sender, and messages of unknown size") {
  const communicator world = communicator::duplicate_of_world();
  mpi::open_rails(world, two_rails);
  const int p = world.size(), me = world.rank();
  constexpr int each = 30;
  std::mt19937 random(unsigned(me) + 1);
  std::vector<std::vector<char>> sent;
  for (int k = 0; k < each; ++k) {
    sent.push_back(pattern(random() % (k % 10 == 9 ? 300000 : 3000), me + k));
    sent.back().insert(sent.back().begin(), char(k));
  }
  std::vector<mpi::message> sends;
  for (int k = 0; k < each; ++k)
    for (int peer = 0; peer < p; ++peer)
      sends.push_back(mpi::isend(whole(sent[std::size_t(k)]), peer, k, world));
  std::vector<int> next(std::size_t(p), 0);
  for (int k = 0; k < each * p; ++k) {
    std::vector<char> got;
    mpi::message m = mpi::irecv(got, MPI_ANY_SOURCE, MPI_ANY_TAG, world);
    while (!m.test()) {
    }
    m.wait();
    const int nth = next[std::size_t(m.source())]++;
    CHECK(m.tag() == nth);
    CHECK(m.bytes() == std::int64_t(got.size()));
    CHECK(got[0] == char(nth));
  }
  for (mpi::message& m : sends) m.wait();
  for (const int n : next) CHECK(n == each);
  MPI_Barrier(world);  // the next messages must not be taken for any
  // Several parts on both sides, cut in different places; a message that is too long.
  std::vector<char> out = pattern(200000, me), in(200000), little(10);
  const message_part halves[] = {{out.data(), 70000}, {out.data() + 70000, 130000}};
  const message_part thirds[] = {
      {in.data(), 3}, {in.data() + 3, 150000}, {in.data() + 150003, 49997}};
  const int right = (me + 1) % p, left = (me + p - 1) % p;
  mpi::message a = mpi::isend(halves, right, 77, world), b = mpi::irecv(thirds, left, 77, world);
  a.wait();
  b.wait();
  CHECK(in == pattern(200000, left));
  a = mpi::isend(halves, right, 78, world);
  b = mpi::irecv(whole(little), left, 78, world);
  CHECK_THROWS_AS(b.wait(), railpass::error);
  CHECK_THROWS_AS(b.test(), railpass::error);
  a.wait();
  CHECK(std::memcmp(little.data(), in.data(), 10) == 0);
  mpi::isend(halves, MPI_PROC_NULL, 0, world).wait();
  CHECK_THROWS_AS(mpi::isend(halves, p, 0, world), railpass::error);
  CHECK_THROWS_AS(mpi::isend(halves, 0, -3, world), railpass::error);
  CHECK_THROWS_AS(mpi::irecv(thirds, -77, 0, world), railpass::error);
  // Freed with the communicator.
}

TEST_CASE("communicators share rails, and their messages do not meet") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), me = world.rank();
  mpi::open_rails(world, two_rails);
  const int connections = open_sockets();
  CHECK(inherited_sockets() == 0);
  // The same ranks backwards, and every second one.
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(world, 0, -me, &made);
  const communicator backwards(made);
  MPI_Comm_split(world, me % 2, me, &made);
  const communicator half(made);
  const communicator* const all[] = {&world, &backwards, &half};
  for (const communicator* const c : {&backwards, &half}) mpi::open_rails(*c, two_rails);
  CHECK(open_sockets() == connections);

  // Each rank sends to all of each communicator with the same tag, and receives in another order.
  const std::vector<std::size_t> sizes{0, 10, 5000, 200000};
  const auto content = [&](int c, int from, std::size_t k) {
    return pattern(sizes[k], 1000 * c + 10 * from + int(k));
  };
  std::vector<std::vector<char>> sent;
  sent.reserve(3 * std::size_t(p) * sizes.size());
  std::vector<mpi::message> sends;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    for (int c = 0; c < 3; ++c)
      for (int to = 0; to < all[c]->size(); ++to) {
        sent.push_back(content(c, all[c]->rank(), k));
        sends.push_back(mpi::isend(whole(sent.back()), to, 4, *all[c]));
      }
  for (int c = 2; c >= 0; --c) {
    std::vector<std::size_t> next(std::size_t(all[c]->size()), 0);
    for (std::size_t k = 0; k < sizes.size() * next.size(); ++k) {
      std::vector<char> got;
      mpi::message m = mpi::irecv(got, MPI_ANY_SOURCE, 4, *all[c]);
      m.wait();
      const int from = m.source();
      REQUIRE((from >= 0 && from < all[c]->size()));
      CHECK(got == content(c, from, next[std::size_t(from)]++));
    }
  }
  for (mpi::message& m : sends) m.wait();

  // A message without a receive ends with its communicator. The rails stay.
  std::vector<char> lost = pattern(3000, 1), found = pattern(3000, 2), got(3000);
  for (int round = 0; round < 5; ++round) {
    const communicator brief = communicator::duplicate_of_world();
    mpi::open_rails(brief, two_rails);
    CHECK(open_sockets() == connections);
    for (int k = 0; k < 100; ++k) mpi::isend(whole(lost), (me + 1) % p, 4, brief).wait();
  }
  mpi::close_rails(world);
  if (p > 1) CHECK(open_sockets() == connections);  // the other communicators use them
  const int place = backwards.rank();
  sends = {mpi::isend(whole(found), (place + 1) % p, 4, backwards)};
  mpi::irecv(whole(got), (place + p - 1) % p, 4, backwards).wait();
  sends[0].wait();
  sends.clear();  // messages keep what they were sent over
  CHECK(got == found);
  CHECK(mpi::rails_to((place + 1) % p, backwards).size() == 2);
  mpi::close_rails(half);
  mpi::close_rails(backwards);
  if (p > 1) CHECK(open_sockets() < connections);
}

TEST_CASE("who waits for the last of many messages keeps few of them") {
  const communicator world = communicator::duplicate_of_world();
  const int me = world.rank();
  constexpr int many = 20000;
  constexpr std::size_t bytes = 1000;
  mpi::open_rails(world, two_rails);
  if (me == 1) {
    for (int k = 0; k <= many; ++k) {
      std::vector<char> out = pattern(bytes, k);
      mpi::isend(whole(out), 0, k, world).wait();  // before a receive is posted
    }
  } else if (me == 0 && world.size() > 1) {
    std::vector<char> in(bytes);
    const std::int64_t before = resident_bytes();
    mpi::irecv(whole(in), 1, many, world).wait();
    CHECK(resident_bytes() - before < many * std::int64_t(bytes) / 4);
    CHECK(in == pattern(bytes, many));
    for (int k = many - 1; k >= 0; k -= 399) {
      mpi::irecv(whole(in), 1, k, world).wait();
      CHECK(in == pattern(bytes, k));
    }
    for (int k = 0; k < 20; ++k) {
      mpi::message first = mpi::irecv(whole(in), MPI_ANY_SOURCE, MPI_ANY_TAG, world);
      first.wait();
      CHECK(first.tag() == k);
    }
  }
  mpi::close_rails(world);  // the other messages are not received
}

TEST_CASE(
    "memory that a rank cannot have is an error on all ranks; the rails may be opened again") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), me = world.rank();
  if (p == 1) return;
  for (int round = 0; round < 2; ++round) {
    mpi::open_rails(world, two_rails);
    std::vector<char> data = pattern(100, me), whole_message;
    // Announced, but never read.
    const message_part huge{data.data(), std::size_t{1} << 47};
    std::string problem;
    try {
      if (me == 1) {
        mpi::message m = mpi::isend({&huge, 1}, 0, 0, world);
        mpi::isend(whole(data), 0, 1, world).wait();
        m.wait();
      } else if (me == 0) {
        mpi::irecv(whole_message, 1, 0, world).wait();
      } else {
        mpi::irecv(whole(data), 0, 2, world).wait();  // no rank sends this message
      }
    } catch (const railpass::error& e) {
      problem = e.what();
    }
    CHECK_FALSE(problem.empty());
    if (me == 0) CHECK(problem.find("rank 0 cannot go on") != std::string::npos);
    CHECK_THROWS_AS(mpi::irecv(whole(data), 1, 1, world), railpass::error);
    CHECK_THROWS_AS(mpi::close_rails(world), railpass::error);
    CHECK_THROWS_AS(mpi::close_rails(world), railpass::error);  // there are none any more
  }
  mpi::open_rails(world, two_rails);
  std::vector<char> out = pattern(100000, me), in(100000);
  const int right = (me + 1) % p, left = (me + p - 1) % p;
  mpi::message a = mpi::isend(whole(out), right, 0, world);
  mpi::irecv(whole(in), left, 0, world).wait();
  a.wait();
  CHECK(in == pattern(100000, left));
  mpi::close_rails(world);
}

TEST_CASE("threads on communicators that share rails") {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    WARN("MPI_THREAD_MULTIPLE is not provided: nothing to test");
    return;
  }
  const communicator first = communicator::duplicate_of_world();
  const communicator second = communicator::duplicate_of_world();
  mpi::open_rails(first, two_rails);
  mpi::open_rails(second, two_rails);
  const auto work = [](const communicator& comm, int& wrong) {
    const int p = comm.size(), me = comm.rank();
    for (int k = 0; k < 30; ++k) {
      const std::size_t n = k % 6 == 0 ? 100000 : 100;
      std::vector<char> out = pattern(n, me + k), in(n);
      mpi::message a = mpi::isend(whole(out), (me + 1) % p, 0, comm);
      mpi::irecv(whole(in), (me + p - 1) % p, 0, comm).wait();
      a.wait();
      if (in != pattern(n, (me + p - 1) % p + k)) ++wrong;
      if (k % 15 == 7) {  // comes and goes meanwhile
        const communicator brief = [&] {
          MPI_Comm copy = MPI_COMM_NULL;
          MPI_Comm_dup(comm, &copy);
          return communicator(copy);
        }();
        mpi::open_rails(brief, two_rails);
        a = mpi::isend(whole(out), (me + 1) % p, 0, brief);
        mpi::irecv(whole(in), (me + p - 1) % p, 0, brief).wait();
        a.wait();
        if (in != pattern(n, (me + p - 1) % p + k)) ++wrong;
      }
    }
  };
  int wrong[2] = {0, 0};
  std::thread other([&] { work(second, wrong[1]); });
  work(first, wrong[0]);
  other.join();
  CHECK(wrong[0] == 0);
  CHECK(wrong[1] == 0);
}

TEST_CASE("rails that are not there are refused on all ranks with the reason") {
  const communicator world = communicator::duplicate_of_world();
  const auto refused = [&](const mpi::rails_options& options, const char* why) {
    try {
      mpi::open_rails(world, options);
      FAIL_CHECK("opened");
      mpi::close_rails(world);
    } catch (const railpass::error& e) {
      INFO(e.what());
      CHECK(std::string(e.what()).find(why) != std::string::npos);
    }
  };
  std::vector<char> nothing;
  CHECK_THROWS_AS(mpi::isend(whole(nothing), 0, 0, world), railpass::error);
  refused({.rails = "nosuch0", .strategy = {}}, "nosuch0");
  refused({.rails = "192.0.2.1", .strategy = {}}, "192.0.2.1");
  refused({.rails = "10.0.0/8x", .strategy = {}}, "10.0.0/8x");
  refused({.rails = two_rails.rails, .strategy = "best"}, "expected one of");
  refused({.rails = "mpi,127.0.0.2,mpi", .strategy = {}}, "'mpi' once");
  refused({.rails = "tcp:mpi", .strategy = {}}, "'mpi': no such interface");
  // One rank alone has no such rail.
  const bool last = world.rank() == world.size() - 1;
  refused({.rails = last ? "127.0.0.2,nosuch1" : "127.0.0.2,127.0.0.3", .strategy = {}}, "nosuch1");
  if (world.size() > 1)
    refused({.rails = last ? "127.0.0.2" : "127.0.0.2,127.0.0.3", .strategy = {}},
            "same kinds on all ranks");
  if (world.size() > 1)
    refused({.rails = last ? "127.0.0.2,mpi" : "mpi,127.0.0.2", .strategy = {}}, "same kinds");
  mpi::open_rails(world, two_rails);
  refused(two_rails, "already");
  mpi::close_rails(world);
}
