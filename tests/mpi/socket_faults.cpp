// SPDX-License-Identifier: BSL-1.0
//
// System calls on the rails' sockets that transfer less than possible, are interrupted or fail.
// Messages are right all the same, or all ranks get an error; no rank hangs.
#include "railpass/rails.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <netinet/in.h>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <vector>

using namespace railpass;
using mpi::message_part;

namespace {

const mpi::rails_options two_rails{.rails = "127.0.0.2,127.0.0.3", .strategy = {}};

// All transfers are cut short or interrupted, now and then. (MPI libraries have threads.)
thread_local std::mt19937 chance;
std::atomic<bool> stutters = false;
// One call of the name `failing` on the rails fails: number `left` from now on.
std::string_view failing;
int failure = 0, left = 0;
bool has_failed = false;

bool is_of_rails(int fd) {
  sockaddr_in mine{};
  socklen_t length = sizeof mine;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &length) == 0 &&
         mine.sin_family == AF_INET &&
         (mine.sin_addr.s_addr == htonl(0x7f000002) || mine.sin_addr.s_addr == htonl(0x7f000003));
}

bool fails(std::string_view call, int fd = -1) {
  if (call != failing || (fd >= 0 && !is_of_rails(fd)) || --left != 0) return false;
  has_failed = true;
  errno = failure;
  return true;
}
bool is_interrupted() {
  if (!stutters || chance() % 4 != 0) return false;
  errno = EINTR;
  return true;
}
std::size_t shortened(std::size_t bytes, int fd) {
  if (!stutters || bytes < 2 || chance() % 3 != 0 || !is_of_rails(fd)) return bytes;
  return 1 + chance() % std::min<std::size_t>(bytes - 1, chance() % 2 == 0 ? 7 : 5000);
}
// The message's first bytes.
class shortened_message {
 public:
  shortened_message(const msghdr& of, int fd) : made_(of) {
    const std::span parts(of.msg_iov, of.msg_iovlen);
    std::size_t all = 0;
    for (const iovec& p : parts) all += p.iov_len;
    for (std::size_t bytes = shortened(all, fd); const iovec& p : parts) {
      const std::size_t n = std::min(bytes, p.iov_len);
      parts_.push_back({p.iov_base, n});
      bytes -= n;
    }
    made_.msg_iov = parts_.data();
  }
  operator msghdr*() { return &made_; }

 private:
  std::vector<iovec> parts_;
  msghdr made_;
};

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// Replaces the C library's function, for librailpass as well.
extern "C" ssize_t sendmsg(int fd, const msghdr* m, int flags) {
  static auto* const next = real<ssize_t(int, const msghdr*, int)>("sendmsg");
  if ((stutters && is_of_rails(fd) && is_interrupted()) || fails("sendmsg", fd)) return -1;
  // Asio assumes that less is sent only if there is no room for more.
  if (!stutters || !is_of_rails(fd) || (flags & MSG_DONTWAIT) == 0) return next(fd, m, flags);
  return next(fd, shortened_message(*m, fd), flags);
}
extern "C" ssize_t recvmsg(int fd, msghdr* m, int flags) {
  static auto* const next = real<ssize_t(int, msghdr*, int)>("recvmsg");
  if ((stutters && is_of_rails(fd) && is_interrupted()) || fails("recvmsg", fd)) return -1;
  if (!stutters || !is_of_rails(fd)) return next(fd, m, flags);
  return next(fd, shortened_message(*m, fd), flags);
}
extern "C" ssize_t send(int fd, const void* from, size_t bytes, int flags) {
  static auto* const next = real<ssize_t(int, const void*, size_t, int)>("send");
  if ((stutters && is_of_rails(fd) && is_interrupted()) || fails("send", fd)) return -1;
  return next(fd, from, bytes, flags);
}
extern "C" ssize_t recv(int fd, void* to, size_t bytes, int flags) {
  static auto* const next = real<ssize_t(int, void*, size_t, int)>("recv");
  if ((stutters && is_of_rails(fd) && is_interrupted()) || fails("recv", fd)) return -1;
  return next(fd, to, shortened(bytes, fd), flags);
}
extern "C" int accept4(int fd, sockaddr* who, socklen_t* length, int flags) {
  static auto* const next = real<int(int, sockaddr*, socklen_t*, int)>("accept4");
  if ((stutters && is_of_rails(fd) && is_interrupted()) || fails("accept4", fd)) return -1;
  return next(fd, who, length, flags);
}
extern "C" int socket(int domain, int type, int protocol) noexcept {
  static auto* const next = real<int(int, int, int)>("socket");
  const bool is_stream = (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM;
  if (domain == AF_INET && is_stream && fails("socket")) return -1;
  return next(domain, type, protocol);
}
extern "C" int epoll_wait(int fd, epoll_event* events, int most, int timeout) {
  static auto* const next = real<int(int, epoll_event*, int, int)>("epoll_wait");
  if (is_interrupted()) return -1;
  return next(fd, events, most, timeout);
}

namespace {

// Sends to both neighbours, in sizes of all kinds. Returns whether everything has arrived and is
// right; throws error.
void shift(MPI_Comm comm) {
  int p = 1, me = 0;
  MPI_Comm_size(comm, &p);
  MPI_Comm_rank(comm, &me);
  const auto content = [](int from, std::size_t bytes) {
    std::vector<char> b(bytes);
    for (std::size_t i = 0; i < bytes; ++i) b[i] = char(i * 131 + (i >> 8) + std::size_t(from));
    return b;
  };
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{9000}, std::size_t{400000}})
    for (const int step : {1, p - 1}) {
      std::vector<char> out = content(me, bytes), in(bytes);
      const message_part from{out.data(), bytes}, to{in.data(), bytes};
      const int source = (me + p - step) % p;
      mpi::message receive = mpi::irecv({&to, 1}, source, 0, comm);
      mpi::isend({&from, 1}, (me + step) % p, 0, comm).wait();
      receive.wait();
      CHECK(in == content(source, bytes));
    }
}

}  // namespace

TEST_CASE("calls that are interrupted or transfer a few bytes change nothing") {
  const communicator world = communicator::duplicate_of_world();
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  chance.seed(seed);
  for (int round = 0; round < 3; ++round) {
    stutters = true;
    CHECK_NOTHROW(mpi::open_rails(world, two_rails));
    CHECK_NOTHROW(shift(world));
    CHECK_NOTHROW(mpi::close_rails(world));
    stutters = false;
  }
}

TEST_CASE("a call that fails is an error on all ranks, or none on any") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), me = world.rank();
  if (p == 1) return;  // no sockets
  struct fault {
    const char* call;
    int how;
  };
  int met = 0;
  for (const auto& [call, how] : {fault{"sendmsg", ECONNRESET},
                                  {"recvmsg", ECONNRESET},
                                  {"send", ECONNRESET},
                                  {"recv", ECONNRESET},
                                  {"accept4", EMFILE},
                                  {"accept4", ECONNABORTED},
                                  {"socket", EMFILE}})
    // On the first rank, which listens, and on the last rank, which connects.
    for (const int who : {0, p - 1})
      for (const int which : {1, 2, 4, 9}) {
        CAPTURE(call, how, who, which);
        if (me == who) {
          failing = call;
          failure = how;
          left = which;
        }
        has_failed = false;
        std::string opening, using_it;
        try {
          mpi::open_rails(world, two_rails);
        } catch (const error& e) {
          opening = e.what();
        }
        int state[2] = {opening.empty() ? 1 : 0, opening.empty() ? 0 : 1};  // opened, not
        MPI_Allreduce(MPI_IN_PLACE, state, 2, MPI_INT, MPI_MAX, world);
        CHECK(state[0] + state[1] == 1);  // all or none
        // A listening rank needs its descriptor at once; a connecting rank may get one later.
        if (has_failed && std::string_view(call) == "socket" && which > 2) CHECK(opening.empty());
        if (opening.empty()) {
          try {
            shift(world);
          } catch (const error& e) {
            using_it = e.what();
          }
          // Ranks without a fault learn of the failure at the latest when the rails are closed.
          try {
            mpi::close_rails(world);
          } catch (const error& e) {
            using_it = e.what();
          }
          int troubled[2] = {using_it.empty() ? 0 : 1, has_failed ? 1 : 0};
          MPI_Allreduce(MPI_IN_PLACE, troubled, 2, MPI_INT, MPI_MAX, world);
          if (troubled[0] == 1) {
            CHECK(!using_it.empty());
            CHECK(troubled[1] == 1);  // not without a cause
          }
        }
        failing = {};
        met += has_failed ? 1 : 0;
      }
  if (me == 0 || me == p - 1) CHECK(met > 5);
  CHECK_NOTHROW(mpi::open_rails(world, two_rails));
  CHECK_NOTHROW(shift(world));
  CHECK_NOTHROW(mpi::close_rails(world));
}
