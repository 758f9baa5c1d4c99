// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/tcp/connect.hpp"

#include "lib/rails/agreement.hpp"
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
#include <memory>
#include <optional>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace railpass::tcp {

namespace asio = boost::asio;
using socket = asio::ip::tcp::socket;
using acceptor = asio::ip::tcp::acceptor;

descriptor& descriptor::operator=(descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

descriptor::~descriptor() {
  if (fd_ >= 0) close(fd_);
}

namespace {

constexpr auto set_up_deadline = std::chrono::seconds(20);
constexpr auto hand_shake_deadline = std::chrono::seconds(5);

using word = std::array<unsigned char, 32>;

// What both ends say first: who they are, and the word the other one gave them.
struct greeting {
  std::array<char, 8> magic = {'r', 'a', 'i', 'l', 'p', 'a', 's', 's'};
  std::uint32_t version = 1;
  std::uint32_t rank = 0;  // as bytes: of the same machine family on both ends, else refused
  std::uint32_t rail = 0;
  std::uint32_t zero = 0;
  word shown{};
};
static_assert(sizeof(greeting) == 56);

bool equal(const word& a, const word& b) {  // in constant time
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= unsigned(a[i] ^ b[i]);
  return difference == 0;
}

word random_word() {
  word w{};
  if (getrandom(w.data(), w.size(), 0) != ssize_t(w.size()))
    throw error("no random numbers from the system: " + std::string(std::strerror(errno)));
  return w;
}

struct endpoint {
  std::uint32_t address = 0;
  std::uint32_t port = 0;
};

class meeting {
 public:
  meeting(MPI_Comm comm, std::vector<interface> locals) : locals_(std::move(locals)) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &num_ranks_);
    const std::size_t n = locals_.size() * std::size_t(num_ranks_);
    sockets_.resize(n);
    words_.resize(n);
    given_.resize(n);
    for (word& w : words_) w = random_word();
  }

  // Opens the listeners; only then can others be told where they are.
  void listen() {
    for (const interface& local : locals_) {
      const asio::ip::tcp::endpoint where(asio::ip::address_v4(local.address), 0);
      acceptor a(io_);
      a.open(where.protocol());
      a.bind(where);
      a.listen(std::min(num_ranks_ + 8, 1024));
      mine_.push_back({local.address, a.local_endpoint().port()});
      acceptors_.push_back(std::move(a));
    }
  }

  void exchange(MPI_Comm comm) {
    const int rails = int(locals_.size());
    endpoints_.resize(sockets_.size());
    PMPI_Allgather(mine_.data(), rails * int(sizeof(endpoint)), MPI_BYTE, endpoints_.data(),
                   rails * int(sizeof(endpoint)), MPI_BYTE, comm);
    PMPI_Alltoall(words_.data(), rails * int(sizeof(word)), MPI_BYTE, given_.data(),
                  rails * int(sizeof(word)), MPI_BYTE, comm);
  }

  // Ranks connect to those before them. Until all are there, or time is over.
  void run() {
    missing_ = std::size_t(num_ranks_ - 1) * locals_.size();
    for (std::size_t rail = 0; rail < locals_.size(); ++rail) {
      if (rank_ + 1 < num_ranks_) asio::co_spawn(io_, accept_all(rail), asio::detached);
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
    for (acceptor& a : acceptors_) a.close();
    if (!problem_.empty()) throw error(problem_);
  }

  std::vector<connected_rail> result() {
    std::vector<connected_rail> rails(locals_.size());
    for (std::size_t r = 0; r < rails.size(); ++r) {
      rails[r].local = locals_[r];
      rails[r].sockets.resize(std::size_t(num_ranks_));
      for (int peer = 0; peer < num_ranks_; ++peer)
        if (auto& s = sockets_[place(r, peer)]) {
          s->non_blocking(true);
          rails[r].sockets[std::size_t(peer)] = descriptor(s->release());
        }
    }
    return rails;
  }

 private:
  std::size_t place(std::size_t rail, int peer) const {
    return std::size_t(peer) * locals_.size() + rail;
  }
  std::string name_of(std::size_t rail) const {
    return locals_[rail].name + " (" + format_address(locals_[rail].address) + ")";
  }

  // Ranks on one host have the same address: what they say to each other does not leave it, and the
  // kernel carries it over another interface than the one named.
  void bind_to_interface(socket& s, std::size_t rail, int peer) {
    if (endpoints_[place(rail, peer)].address == locals_[rail].address) return;
    const std::string& name = locals_[rail].name;
    if (setsockopt(s.native_handle(), SOL_SOCKET, SO_BINDTODEVICE, name.c_str(),
                   socklen_t(name.size())) != 0)
      throw error("the kernel does not bind to " + name + ": " + std::strerror(errno));
    char bound[64] = "";
    socklen_t length = sizeof bound;
    if (getsockopt(s.native_handle(), SOL_SOCKET, SO_BINDTODEVICE, bound, &length) != 0 ||
        name != bound)
      throw error("messages would not leave by " + name);
  }

  greeting my_greeting(std::size_t rail, int peer) const {
    greeting g;
    g.rank = std::uint32_t(rank_);
    g.rail = std::uint32_t(rail);
    g.shown = given_[place(rail, peer)];
    return g;
  }
  // Who greets; nobody if that is not one of ours.
  std::optional<int> check(const greeting& g, std::size_t rail) const {
    const greeting expected;
    if (g.magic != expected.magic || g.version != expected.version || g.zero != 0 ||
        g.rail != rail || g.rank >= std::uint32_t(num_ranks_) || int(g.rank) == rank_ ||
        !equal(g.shown, words_[place(rail, int(g.rank))]))
      return std::nullopt;
    return int(g.rank);
  }

  void met(std::size_t rail, int peer, socket&& s) {
    sockets_[place(rail, peer)] = std::move(s);
    if (--missing_ == 0) io_.stop();
  }
  void give_up(const std::string& why) {
    if (problem_.empty()) problem_ = why;
    io_.stop();
  }

  asio::awaitable<void> accept_all(std::size_t rail) {
    boost::system::error_code failure;
    while (!failure) {
      auto s = std::make_shared<socket>(io_);
      co_await acceptors_[rail].async_accept(*s,
                                             asio::redirect_error(asio::use_awaitable, failure));
      if (!failure) asio::co_spawn(io_, answer(rail, s), asio::detached);
    }
    if (failure != asio::error::operation_aborted)
      give_up("nobody can be accepted on " + name_of(rail) + ": " + failure.message());
  }

  // Strangers, and those who do not speak, are hung up on.
  asio::awaitable<void> answer(std::size_t rail, std::shared_ptr<socket> s) {
    asio::steady_timer timer(io_, hand_shake_deadline);
    timer.async_wait([s](const boost::system::error_code& cancelled) {
      if (!cancelled) s->close();
    });
    std::optional<int> peer;
    try {
      greeting theirs;
      co_await asio::async_read(*s, asio::buffer(&theirs, sizeof theirs), asio::use_awaitable);
      peer = check(theirs, rail);
      if (!peer || *peer < rank_ || sockets_[place(rail, *peer)]) co_return;
      const greeting mine = my_greeting(rail, *peer);
      co_await asio::async_write(*s, asio::buffer(&mine, sizeof mine), asio::use_awaitable);
    } catch (const boost::system::system_error&) {
      co_return;
    }
    timer.cancel();
    try {
      bind_to_interface(*s, rail, *peer);
      met(rail, *peer, std::move(*s));
    } catch (const error& e) {
      give_up(e.what());
    }
  }

  asio::awaitable<void> call(std::size_t rail, int peer) {
    const endpoint& there = endpoints_[place(rail, peer)];
    const std::string who = "rank " + std::to_string(peer) + " at " +
                            format_address(there.address) + " over " + name_of(rail);
    auto s = std::make_shared<socket>(io_);
    asio::steady_timer timer(io_, hand_shake_deadline * 2);
    timer.async_wait([s](const boost::system::error_code& cancelled) {
      if (!cancelled) s->close();
    });
    try {
      const auto here = asio::ip::address_v4(locals_[rail].address);
      s->open(asio::ip::tcp::v4());
      bind_to_interface(*s, rail, peer);
      s->bind({here, 0});
      co_await s->async_connect({asio::ip::address_v4(there.address), std::uint16_t(there.port)},
                                asio::use_awaitable);
      const greeting mine = my_greeting(rail, peer);
      co_await asio::async_write(*s, asio::buffer(&mine, sizeof mine), asio::use_awaitable);
      greeting theirs;
      co_await asio::async_read(*s, asio::buffer(&theirs, sizeof theirs), asio::use_awaitable);
      timer.cancel();
      if (check(theirs, rail) != peer) {
        give_up("another program answered in place of " + who);
        co_return;
      }
      met(rail, peer, std::move(*s));
    } catch (const boost::system::system_error& e) {
      timer.cancel();
      give_up(who + " cannot be reached: " + e.code().message());
    } catch (const error& e) {
      timer.cancel();
      give_up(e.what());
    }
  }

  asio::io_context io_{1};  // first: it must outlive the sockets
  int rank_ = 0, num_ranks_ = 1;
  std::vector<interface> locals_;
  std::vector<acceptor> acceptors_;
  std::vector<endpoint> mine_, endpoints_;
  std::vector<word> words_, given_;  // that the peer shows us, and that we show the peer
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
    m.emplace(comm, std::move(locals));
    m->listen();
  });
  m->exchange(comm);
  on_all(comm, [&] { m->run(); });
  return m->result();
}

}  // namespace railpass::tcp
