// SPDX-License-Identifier: BSL-1.0
//
// Connections of strangers to the rails' ports while ranks connect, and limits of the system at
// that time.
#include "lib/rails/tcp/greeting.hpp"
#include "railpass/rails.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using mpi::message_part;

namespace {

const mpi::rails_options two_rails{.rails = "127.0.0.2,127.0.0.3", .strategy = {}};

// A connection of a stranger.
class knock {
 public:
  explicit knock(const sockaddr_in& where) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval bound{.tv_sec = 2, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    is_open_ = connect(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }
  knock(knock&& other) noexcept : fd_(other.fd_), is_open_(other.is_open_) { other.fd_ = -1; }
  knock& operator=(knock&&) = delete;
  ~knock() {
    if (fd_ >= 0) close(fd_);
  }
  bool is_open() const { return is_open_; }
  void say(const void* what, std::size_t bytes) const {
    static_cast<void>(!write(fd_, what, bytes));  // the rank may have closed the connection
  }
  // All bytes until the rank closes the connection, or for 2 s.
  std::size_t heard_bytes() const {
    std::size_t sum = 0;
    char some[256];
    for (ssize_t n = 0; (n = recv(fd_, some, sizeof some, 0)) > 0;) sum += std::size_t(n);
    return sum;
  }

 private:
  int fd_;
  bool is_open_ = false;
};

std::atomic<bool> replays{false}, dawdles{false};
std::atomic<int> replayed{0}, convinced{0};

// A stranger on the way repeats a caller's words, before they arrive.
void replay(int fd, const void* words, std::size_t bytes) {
  static thread_local std::vector<knock> thief;
  const bool introduces =
      bytes == tcp::introduction_bytes && std::memcmp(words, "railpass", 8) == 0;
  const bool proves = bytes == sizeof(tcp::word) && !thief.empty();
  if (introduces) {
    sockaddr_in where{};
    socklen_t length = sizeof where;
    getpeername(fd, reinterpret_cast<sockaddr*>(&where), &length);
    if (where.sin_family != AF_INET || where.sin_addr.s_addr != htonl(0x7f000002)) return;
    thief.clear();
    thief.emplace_back(where);
    thief.back().say(words, bytes);
  } else if (proves) {
    thief.back().say(words, bytes);
    // At most an introduction and a proof are answered; a convinced rank sends one byte more.
    ++replayed;
    if (thief.back().heard_bytes() > tcp::introduction_bytes + sizeof(tcp::word)) ++convinced;
    thief.clear();
  }
}

// A caller that delays its introduction: the listening rank waits for longer.
void dawdle(std::size_t bytes) {
  if (dawdles && bytes == tcp::introduction_bytes)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// Replaces the C library's function, for librailpass as well.
extern "C" ssize_t sendmsg(int fd, const msghdr* m, int flags) {
  static auto* const next = real<ssize_t(int, const msghdr*, int)>("sendmsg");
  if (m->msg_iovlen == 1) {
    dawdle(m->msg_iov[0].iov_len);
    if (replays) replay(fd, m->msg_iov[0].iov_base, m->msg_iov[0].iov_len);
  }
  return next(fd, m, flags);
}
extern "C" ssize_t send(int fd, const void* from, size_t bytes, int flags) {
  static auto* const next = real<ssize_t(int, const void*, size_t, int)>("send");
  dawdle(bytes);
  if (replays) replay(fd, from, bytes);
  return next(fd, from, bytes, flags);
}

namespace {

void messages_pass(MPI_Comm comm) {
  int p = 1, me = 0;
  MPI_Comm_size(comm, &p);
  MPI_Comm_rank(comm, &me);
  std::vector<char> out(1000, char(me)), in(1000);
  const message_part from{out.data(), out.size()}, to{in.data(), in.size()};
  mpi::message a = mpi::isend({&from, 1}, (me + 1) % p, 0, comm);
  mpi::irecv({&to, 1}, (me + p - 1) % p, 0, comm).wait();
  a.wait();
  CHECK(in == std::vector<char>(1000, char((me + p - 1) % p)));
}

// During its life, visits every listening port on 127.0.0.2.
class visitor {
 public:
  explicit visitor(std::function<void(const sockaddr_in&)> visit)
      : visit_(std::move(visit)), thread_([this] { run(); }) {}
  ~visitor() {
    stop_ = true;
    thread_.join();
  }

 private:
  void run() {
    while (!stop_) {
      std::ifstream sockets("/proc/net/tcp");
      for (std::string line; std::getline(sockets, line);) {
        unsigned address = 0, port = 0, state = 0;
        if (std::sscanf(line.c_str(), " %*d: %x:%x %*x:%*x %x", &address, &port, &state) != 3 ||
            address != htonl(0x7f000002) || state != 0x0a)
          continue;
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_port = htons(std::uint16_t(port));
        where.sin_addr.s_addr = address;
        visit_(where);
      }
    }
  }

  std::function<void(const sockaddr_in&)> visit_;
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last, because it uses the other members
};

// Opens and closes rails until rank 0 has had enough visits. The other ranks delay their
// introduction, so that most rounds have a visit.
template <class Suffice>
void open_until(const communicator& world, const Suffice& suffice) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(600);
  enum : int { go_on, done, too_late } state = go_on;
  while (state == go_on) {
    dawdles = world.rank() > 0;
    mpi::open_rails(world, two_rails);
    dawdles = false;
    messages_pass(world);
    mpi::close_rails(world);
    if (world.rank() == 0 && std::chrono::steady_clock::now() > deadline) state = too_late;
    if (world.rank() == 0 && suffice()) state = done;
    MPI_Bcast(&state, 1, MPI_INT, 0, world);
  }
  CHECK(state == done);
}

}  // namespace

TEST_CASE("strangers are hung up on, whatever they say, and disturb nobody") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() == 1) return;  // no rank listens
  std::atomic<int> hung_up{0}, answered{0};
  const auto knocks = [&](const sockaddr_in& where) {
    const knock k(where);
    if (!k.is_open()) return;
    const tcp::packed_introduction mine = tcp::pack({.epoch = 1, .rank = 1});
    k.say(mine.data(), mine.size());
    ++(k.heard_bytes() == 0 ? hung_up : answered);
  };
  std::optional<visitor> stranger;
  if (world.rank() == 0) stranger.emplace(knocks);
  open_until(world, [&] { return hung_up > 0; });
  stranger.reset();
  CHECK(answered == 0);
}

TEST_CASE("a crowd of strangers who say nothing keeps nobody out") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() == 1) return;
  constexpr std::size_t crowd = 200;
  std::atomic<std::size_t> largest{0};
  std::optional<visitor> stranger;
  if (world.rank() == 0)
    stranger.emplace([&](const sockaddr_in& where) {
      std::vector<knock> held;
      while (held.size() < crowd) {
        held.emplace_back(where);
        if (!held.back().is_open()) break;
      }
      largest = std::max(largest.load(), held.size());
      if (held.size() == crowd) held.front().heard_bytes();  // until the rank closes the connection
    });
  open_until(world, [&] { return largest == crowd; });
}

TEST_CASE("a greeting that is said again convinces nobody") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() == 1) return;
  replays = true;
  mpi::open_rails(world, two_rails);
  replays = false;
  messages_pass(world);
  mpi::close_rails(world);
  if (world.rank() > 0) CHECK(replayed > 0);
  CHECK(convinced == 0);
}

TEST_CASE(
    "the limit of descriptors is raised where it may be; else a sentence says what is missing") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() == 1) return;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlim_t in_use = 0;
  DIR* const all = opendir("/proc/self/fd");
  while (all && readdir(all)) ++in_use;
  closedir(all);
  rlimit low = before;
  low.rlim_cur = in_use + 4;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  mpi::open_rails(world, two_rails);
  messages_pass(world);
  mpi::close_rails(world);
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  CHECK(now.rlim_cur == before.rlim_max);
  low.rlim_max = low.rlim_cur;
  int may_raise = 0;
  const pid_t child = fork();
  if (child == 0)
    _exit(setrlimit(RLIMIT_NOFILE, &low) == 0 && setrlimit(RLIMIT_NOFILE, &before) == 0 ? 7 : 0);
  int status = 0;
  if (waitpid(child, &status, 0) == child && WIFEXITED(status)) may_raise = WEXITSTATUS(status);
  MPI_Allreduce(MPI_IN_PLACE, &may_raise, 1, MPI_INT, MPI_MIN, world);
  if (may_raise == 7) {
    const bool lowered = world.rank() > 0 || setrlimit(RLIMIT_NOFILE, &low) == 0;
    CHECK_THROWS_WITH(mpi::open_rails(world, two_rails), ContainsSubstring("ulimit -Hn"));
    CHECK(lowered);
  } else {
    WARN("SKIPPED in part: no privilege to raise a hard limit again (CAP_SYS_RESOURCE)");
  }
  CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}
