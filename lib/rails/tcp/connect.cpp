// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/tcp/connect.hpp"

#include "lib/rails/agreement.hpp"
#include "lib/rails/tcp/greeting.hpp"
#include "railpass/base/error.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <chrono>
#include <cstring>
#include <dirent.h>
#include <list>
#include <memory>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <optional>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace railpass::internal::tcp {

namespace asio = boost::asio;
using socket = asio::ip::tcp::socket;
using acceptor = asio::ip::tcp::acceptor;

namespace {

using std::chrono::steady_clock;
constexpr auto set_up_deadline = std::chrono::seconds(20);
constexpr auto call_deadline = std::chrono::seconds(10);
constexpr auto greeting_deadline = std::chrono::seconds(5);
constexpr std::size_t most_half_open = 64;
// If most_half_open is reached, connections without proof after this time make room.
constexpr auto crowded_deadline = std::chrono::milliseconds(250);
constexpr auto pause = std::chrono::milliseconds(10);

// The listener's last byte, once it has verified the caller: the caller need not call again.
constexpr char welcome = '+';

struct answer_of_listener {
  packed_introduction introduced;
  word shown;
};
static_assert(sizeof(answer_of_listener) == introduction_bytes + sizeof(word));

[[noreturn]] void fail(const std::string& what) { throw error(what + ": " + std::strerror(errno)); }

void bind_to_device(int fd, const std::string& device) {
  if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device.c_str(), socklen_t(device.size())) != 0)
    fail("the kernel does not bind to " + device);
  char bound[64] = "";
  socklen_t length = sizeof bound;
  if (getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, bound, &length) != 0 || device != bound)
    throw error("messages would not leave by " + device);
}

// Programs that this process executes would inherit sockets that Asio opens. Throws
// boost::system::system_error.
file_descriptor new_socket() {
  file_descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made.get() < 0)
    throw boost::system::system_error(errno, boost::system::system_category(),
                                      "no socket from the system");
  return made;
}

bool lacks_descriptors(const boost::system::error_code& code) {
  return code == boost::system::errc::too_many_files_open ||
         code == boost::system::errc::too_many_files_open_in_system;
}

void bind_to_address(int fd, std::uint32_t address) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(address);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
    fail("the address " + format_address(address) + " cannot be used");
}

std::size_t open_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc/self/fd"), closedir);
  std::size_t n = 0;
  while (all && readdir(all.get())) ++n;
  return n;
}

// Raises the limit if it leaves too little room for `more` descriptors.
void have_descriptors(std::size_t more) {
  constexpr std::size_t spare = 16;
  const rlim_t needed = open_descriptors() + more + spare;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || needed <= limit.rlim_cur) return;
  if (needed > limit.rlim_max)
    throw error("the rails take " + std::to_string(more) + " descriptors, with others " +
                std::to_string(needed) + ", and this process may have " +
                std::to_string(limit.rlim_max) +
                " at most (ulimit -Hn); expected a higher limit, fewer rails or fewer ranks");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) fail("the limit of descriptors cannot be raised");
}

// Sent as raw bytes. Greetings are refused unless all ranks are of the same machine family.
struct endpoint {
  std::uint32_t address = 0;
  std::uint32_t port = 0;        // for other hosts
  std::uint32_t local_port = 0;  // for ranks of the same host
};

class meeting {
 public:
  meeting(MPI_Comm comm, std::vector<interface> locals, std::string loopback)
      : locals_(std::move(locals)), loopback_(std::move(loopback)) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &num_ranks_);
    sockets_.resize(locals_.size() * std::size_t(num_ranks_));
    secret_.key = random_word();
    const word epoch = random_word();
    std::memcpy(&secret_.epoch, epoch.data(), sizeof secret_.epoch);
  }
  ~meeting() { OPENSSL_cleanse(&secret_, sizeof secret_); }
  meeting(const meeting&) = delete;
  meeting& operator=(const meeting&) = delete;

  // Opens the listeners, whose ports exchange() then sends to the other ranks.
  void listen() {
    have_descriptors(locals_.size() * (std::size_t(num_ranks_) + 2));
    for (std::size_t rail = 0; rail < locals_.size(); ++rail) {
      endpoint e{.address = locals_[rail].address};
      // Messages between ranks of one host stay on the host, whatever its address. Addresses such
      // as 127.0.0.1 cannot be reached from other hosts.
      if (locals_[rail].loopback) {
        e.local_port = listen_at(rail, "");
      } else {
        e.port = listen_at(rail, device_of(locals_[rail]));
        e.local_port = listen_at(rail, loopback_);
      }
      mine_.push_back(e);
    }
  }

  // All ranks take rank 0's secret.
  void exchange(MPI_Comm comm) {
    const int bytes = int(locals_.size() * sizeof(endpoint));
    endpoints_.resize(sockets_.size());
    PMPI_Allgather(mine_.data(), bytes, MPI_BYTE, endpoints_.data(), bytes, MPI_BYTE, comm);
    PMPI_Bcast(&secret_, int(sizeof secret_), MPI_BYTE, 0, comm);
  }

  // Each rank calls all lower ranks. Returns when all ranks are connected; fails after the
  // deadline.
  void run() {
    missing_ = std::size_t(num_ranks_ - 1) * locals_.size();
    for (listening& l : listeners_)
      if (rank_ + 1 < num_ranks_) asio::co_spawn(io_, accept_all(l), asio::detached);
    for (std::size_t rail = 0; rail < locals_.size(); ++rail) {
      for (int peer = 0; peer < rank_; ++peer)
        asio::co_spawn(io_, call(rail, peer), asio::detached);
    }
    if (missing_ > 0) io_.run_for(set_up_deadline);
    if (missing_ > 0 && problem_.empty())
      for (std::size_t i = 0; i < sockets_.size(); ++i)
        if (!sockets_[i] && int(i / locals_.size()) != rank_) {
          problem_ = "rank " + std::to_string(i / locals_.size()) + " was not met on " +
                     name_of(i % locals_.size()) + " within " +
                     std::to_string(set_up_deadline.count()) + " s";
          break;
        }
    for (listening& l : listeners_) l.accepts.close();
    if (!problem_.empty()) throw error(problem_);
  }

  std::vector<connected_rail> result() {
    std::vector<connected_rail> rails(locals_.size());
    for (std::size_t r = 0; r < rails.size(); ++r) {
      rails[r].local = locals_[r];
      rails[r].sockets.resize(std::size_t(num_ranks_));
      for (int peer = 0; peer < num_ranks_; ++peer)
        if (auto& s = sockets_[index(r, peer)]) {
          s->non_blocking(true);
          rails[r].sockets[std::size_t(peer)] = file_descriptor(s->release());
        }
    }
    return rails;
  }

 private:
  std::size_t index(std::size_t rail, int peer) const {
    return std::size_t(peer) * locals_.size() + rail;
  }
  std::string name_of(std::size_t rail) const {
    return locals_[rail].name + " (" + format_address(locals_[rail].address) + ")";
  }

  std::uint32_t listen_at(std::size_t rail, const std::string& device) {
    file_descriptor fd = new_socket();
    if (!device.empty()) bind_to_device(fd.get(), device);
    bind_to_address(fd.get(), locals_[rail].address);
    if (::listen(fd.get(), SOMAXCONN) != 0) fail("cannot listen for connections");
    listeners_.push_back({rail, acceptor(io_, asio::ip::tcp::v4(), fd.release())});
    return listeners_.back().accepts.local_endpoint().port();
  }

  bool is_on_this_host(std::size_t rail, int peer) const {
    return endpoints_[index(rail, peer)].address == locals_[rail].address;
  }

  introduction introduced(std::size_t rail) const {
    return {.epoch = secret_.epoch,
            .rank = std::uint32_t(rank_),
            .rail = std::uint32_t(rail),
            .nonce = random_word()};
  }
  // Nothing unless the bytes introduce another rank, on this rail and in this epoch.
  std::optional<introduction> understood(const packed_introduction& bytes, std::size_t rail) const {
    const std::optional<introduction> i = parse_introduction(bytes);
    if (!i || i->epoch != secret_.epoch || i->rail != rail ||
        i->rank >= std::uint32_t(num_ranks_) || int(i->rank) == rank_)
      return std::nullopt;
    return i;
  }

  // A peer that calls again has lost its connection before the welcome arrived.
  void met(std::size_t rail, int peer, socket&& s) {
    std::optional<socket>& mine = sockets_[index(rail, peer)];
    const bool is_new = !mine;
    mine = std::move(s);
    if (is_new && --missing_ == 0) io_.stop();
  }
  void give_up(const std::string& why) {
    if (problem_.empty()) problem_ = why;
    io_.stop();
  }

  struct listening {
    std::size_t rail;
    acceptor accepts;
  };
  // A connection during its greeting.
  struct greeting {
    socket speaks;
    steady_clock::time_point began = steady_clock::now();
    bool late = false;

    void hang_up() {
      boost::system::error_code ignored;
      speaks.close(ignored);
    }
  };
  using greeting_ptr = std::shared_ptr<greeting>;  // shared with timers that may still run

  static void end_at(asio::steady_timer& timer, const greeting_ptr& g) {
    timer.async_wait([g](const boost::system::error_code& cancelled) {
      if (cancelled) return;
      g->late = true;
      g->hang_up();
    });
  }

  asio::awaitable<void> accept_all(listening& l) {
    boost::system::error_code failure;
    for (;;) {
      co_await l.accepts.async_wait(acceptor::wait_read,
                                    asio::redirect_error(asio::use_awaitable, failure));
      if (failure) break;
      bool is_full = half_open_.size() >= most_half_open;
      if (!is_full) {
        const int fd =
            accept4(l.accepts.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
          half_open_.push_back(
              std::make_shared<greeting>(greeting{socket(io_, asio::ip::tcp::v4(), fd)}));
          asio::co_spawn(io_, answer(l.rail, std::prev(half_open_.end())), asio::detached);
          continue;
        }
        const bool no_descriptor = lacks_descriptors({errno, boost::system::system_category()});
        if (no_descriptor && half_open_.empty()) {
          give_up("cannot accept connections on " + name_of(l.rail) + ": " + std::strerror(errno));
          co_return;
        }
        is_full = no_descriptor;
      }
      // Whatever failed (an aborted connection, say), other callers may follow.
      if (is_full) hang_up_on_the_silent();
      asio::steady_timer timer(io_, pause);
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, failure));
    }
    if (failure != asio::error::operation_aborted)
      give_up("cannot accept connections on " + name_of(l.rail) + ": " + failure.message());
  }

  void hang_up_on_the_silent() {
    const auto now = steady_clock::now();
    for (const greeting_ptr& g : half_open_)
      if (now - g->began > crowded_deadline) g->hang_up();
  }

  asio::awaitable<void> answer(std::size_t rail, std::list<greeting_ptr>::iterator who) {
    co_await answer(rail, *who);
    half_open_.erase(who);
  }

  // Hangs up on strangers and on silent callers.
  asio::awaitable<void> answer(std::size_t rail, greeting_ptr g) {
    socket& s = g->speaks;
    asio::steady_timer timer(io_, greeting_deadline);
    end_at(timer, g);
    try {
      packed_introduction theirs;
      co_await asio::async_read(s, asio::buffer(theirs), asio::use_awaitable);
      const std::optional<introduction> caller = understood(theirs, rail);
      if (!caller || int(caller->rank) < rank_) co_return;
      const introduction listener = introduced(rail);
      const answer_of_listener mine{pack(listener),
                                    proof(secret_, end::listener, *caller, listener)};
      co_await asio::async_write(s, asio::buffer(&mine, sizeof mine), asio::use_awaitable);
      word shown;
      co_await asio::async_read(s, asio::buffer(shown), asio::use_awaitable);
      if (!equal(shown, proof(secret_, end::caller, *caller, listener))) co_return;
      co_await asio::async_write(s, asio::buffer(&welcome, 1), asio::use_awaitable);
      timer.cancel();
      met(rail, int(caller->rank), std::move(s));
    } catch (const boost::system::system_error&) {
    } catch (const std::exception& e) {
      give_up(e.what());
    }
  }

  asio::awaitable<void> call(std::size_t rail, int peer) {
    const endpoint& there = endpoints_[index(rail, peer)];
    const std::string who = "rank " + std::to_string(peer) + " at " +
                            format_address(there.address) + " over " + name_of(rail);
    const auto until = steady_clock::now() + call_deadline;
    for (;;) {
      bool connected = false;
      greeting_ptr g;
      try {
        file_descriptor fd = new_socket();
        const bool is_near = locals_[rail].loopback || is_on_this_host(rail, peer);
        if (!is_near) bind_to_device(fd.get(), device_of(locals_[rail]));
        bind_to_address(fd.get(), locals_[rail].address);
        g = std::make_shared<greeting>(greeting{socket(io_, asio::ip::tcp::v4(), fd.release())});
        socket& s = g->speaks;
        asio::steady_timer timer(io_, until);
        end_at(timer, g);
        const auto port = std::uint16_t(is_near ? there.local_port : there.port);
        co_await s.async_connect({asio::ip::address_v4(there.address), port}, asio::use_awaitable);
        connected = true;
        const introduction caller = introduced(rail);
        const packed_introduction mine = pack(caller);
        co_await asio::async_write(s, asio::buffer(mine), asio::use_awaitable);
        answer_of_listener theirs;
        co_await asio::async_read(s, asio::buffer(&theirs, sizeof theirs), asio::use_awaitable);
        const std::optional<introduction> listener = understood(theirs.introduced, rail);
        if (!listener || int(listener->rank) != peer ||
            !equal(theirs.shown, proof(secret_, end::listener, caller, *listener))) {
          give_up("another program answered in place of " + who);
          co_return;
        }
        const word shown = proof(secret_, end::caller, caller, *listener);
        co_await asio::async_write(s, asio::buffer(shown), asio::use_awaitable);
        char said = 0;
        co_await asio::async_read(s, asio::buffer(&said, 1), asio::use_awaitable);
        timer.cancel();
        met(rail, peer, std::move(s));
        co_return;
      } catch (const boost::system::system_error& e) {
        // A listener crowded by strangers may hang up on any caller, and a process without free
        // descriptors may soon have one.
        const bool late = g && g->late;
        if (late || steady_clock::now() > until || !(connected || lacks_descriptors(e.code()))) {
          give_up(who + " cannot be reached: " +
                  (late ? "no answer within " + std::to_string(call_deadline.count()) + " s"
                        : e.code().message()));
          co_return;
        }
      } catch (const std::exception& e) {
        give_up(e.what());
        co_return;
      }
      asio::steady_timer timer(io_, pause);
      co_await timer.async_wait(asio::use_awaitable);
    }
  }

  asio::io_context io_{1};  // first: it must outlive the sockets
  int rank_ = 0, num_ranks_ = 1;
  std::vector<interface> locals_;
  std::string loopback_;  // the device
  secret secret_;
  std::list<listening> listeners_;
  std::list<greeting_ptr> half_open_;  // connections whose callers are unverified
  std::vector<endpoint> mine_, endpoints_;
  std::vector<std::optional<socket>> sockets_;
  std::size_t missing_ = 0;
  std::string problem_;
};

}  // namespace

std::vector<connected_rail> connect_all(MPI_Comm comm, const std::vector<std::string>& rails) {
  std::optional<meeting> m;
  on_all(comm, [&] {
    const std::vector<interface> known = local_interfaces();
    std::vector<interface> locals;
    for (const std::string& rail : rails) locals.push_back(find_interface(rail, known));
    const auto loopback = std::ranges::find_if(known, &interface::loopback);
    m.emplace(comm, std::move(locals), loopback == known.end() ? "lo" : device_of(*loopback));
    m->listen();
  });
  m->exchange(comm);
  on_all(comm, [&] { m->run(); });
  return m->result();
}

}  // namespace railpass::internal::tcp
