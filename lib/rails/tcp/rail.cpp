// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/tcp/rail.hpp"

#include "railpass/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace railpass::internal::tcp {

using transport::header_bytes;
using transport::packet;
using transport::packet_sink;
using transport::piece;

namespace {

constexpr int rto_max_ms = 44, one_second_ms = 1000;  // TCP_RTO_MAX_MS, which glibc has not got

constexpr int most_pieces = 64;  // in one system call
// A header, and small messages with it, come with the system call that reads what is before them.
constexpr std::size_t ahead_bytes = 8 << 10;

}  // namespace

rail::rail(int index, connected_rail connected, clock_function clock)
    : index_(index),
      name_(connected.local.name + " (" + format_address(connected.local.address) + ")"),
      marks_(describe(connected.local)),
      clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      connections_(connected.sockets.size()),
      ahead_(ahead_bytes),
      polled_s_(clock()),
      polled_before_s_(polled_s_) {
  if (epoll_.get() < 0) throw error("epoll: " + std::string(std::strerror(errno)));
  for (std::size_t peer = 0; peer < connections_.size(); ++peer) {
    connection& c = connections_[peer];
    c.socket = std::move(connected.sockets[peer]);
    c.open = c.socket.get() >= 0;
    if (!c.open) continue;
    const int on = 1;
    setsockopt(c.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // Probes of a closed window, and what is sent again, come at most so far apart, so that a
    // network that is lost meanwhile is noticed. From Linux 6.15 on; before, up to 2 minutes.
    setsockopt(c.socket.get(), IPPROTO_TCP, rto_max_ms, &one_second_ms, sizeof one_second_ms);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = peer}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, c.socket.get(), &event) != 0)
      throw error("epoll: " + std::string(std::strerror(errno)));
  }
}

void rail::send(int peer, std::vector<transport::outgoing>& packets, packet_sink& sink) {
  connection& c = of(peer);
  if (!c.open) return;  // the sink knows
  const bool was_empty = c.queue.empty();
  c.quiet = false;
  for (transport::outgoing& o : packets) {
    const std::size_t bytes = header_bytes + std::size_t(o.header.length);
    c.queued_bytes += std::int64_t(bytes);
    const transport::packed_header header = transport::pack(o.header);
    if (!o.copy) {
      waiting& w = c.queue.emplace_back();
      w.header = header;
      w.payload = std::move(o.payload);
      w.token = o.token;
      w.bytes = bytes;
      continue;
    }
    // Behind what was copied before, if that still waits.
    if (c.queue.empty() || c.queue.back().copied.empty())
      c.queue.emplace_back().copied.reserve(bytes);
    waiting& last = c.queue.back();
    last.bytes += bytes;
    last.copied.insert(last.copied.end(), header.begin(), header.end());
    for (const piece& p : o.payload)
      last.copied.insert(last.copied.end(), p.data, p.data + p.bytes);
    // Not before it has left: a rank whose messages have all ended need not come back soon.
    if (o.token != 0) last.copied_tokens.push_back(o.token);
  }
  if (was_empty) write(peer, sink);
}

void rail::write(int peer, packet_sink& sink) {
  connection& c = of(peer);
  while (!c.queue.empty()) {
    std::array<iovec, most_pieces> parts;
    int n = 0;
    const auto add = [&](const std::byte* from, std::size_t bytes, std::size_t& skip) {
      if (skip >= bytes) {
        skip -= bytes;
      } else if (n < most_pieces) {
        parts[std::size_t(n++)] = {const_cast<std::byte*>(from + skip), bytes - skip};
        skip = 0;
      }
    };
    for (const waiting& w : c.queue) {
      std::size_t skip = w.sent_bytes;
      if (w.copied.empty()) {
        add(w.header.data(), header_bytes, skip);
        for (const piece& p : w.payload) add(p.data, p.bytes, skip);
      } else {
        add(w.copied.data(), w.copied.size(), skip);
      }
      if (n == most_pieces) break;
    }
    const msghdr message{.msg_name = nullptr,
                         .msg_namelen = 0,
                         .msg_iov = parts.data(),
                         .msg_iovlen = std::size_t(n),
                         .msg_control = nullptr,
                         .msg_controllen = 0,
                         .msg_flags = 0};
    const ssize_t sent = sendmsg(c.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      close(peer, std::strerror(errno), sink);
      return;
    }
    c.queued_bytes -= sent;
    for (auto left = std::size_t(sent); left > 0;) {
      waiting& w = c.queue.front();
      const std::size_t here = std::min(left, w.bytes - w.sent_bytes);
      w.sent_bytes += here;
      left -= here;
      if (w.sent_bytes < w.bytes) break;
      const waiting gone = std::move(w);
      c.queue.pop_front();
      if (gone.token != 0) sink.sent(gone.token);
      for (const std::uint64_t token : gone.copied_tokens) sink.sent(token);
    }
  }
  watch(peer, !c.queue.empty());
}

void rail::watch(int peer, bool room) {
  connection& c = of(peer);
  if (c.wants_room == room) return;
  c.wants_room = room;
  epoll_event event{.events = room ? EPOLLIN | EPOLLOUT : EPOLLIN,
                    .data = {.u64 = std::uint64_t(peer)}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, c.socket.get(), &event);
}

std::int64_t rail::under_way_bytes(int peer) {
  connection& c = of(peer);
  if (!c.open || c.quiet) return 0;
  int kernel = 0;  // neither acknowledged nor, in part, sent
  ioctl(c.socket.get(), SIOCOUTQ, &kernel);
  c.quiet = kernel == 0 && c.queue.empty();
  return c.queued_bytes + kernel;
}

std::int64_t rail::under_way_bytes() {
  std::int64_t sum = 0;
  for (std::size_t peer = 0; peer < connections_.size(); ++peer) sum += under_way_bytes(int(peer));
  return sum;
}

// The peer's kernel answers for its process: data, and the probes of a window that is closed
// because the process does not read.
std::optional<double> rail::unanswered_s(int peer) {
  connection& c = of(peer);
  if (!c.open) return 0;
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(c.socket.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return std::nullopt;
  const bool waits = info.tcpi_unacked > 0 && info.tcpi_last_ack_recv > info.tcpi_last_data_sent;
  return waits || info.tcpi_probes > 0 ? 1e-3 * std::max(1u, info.tcpi_last_ack_recv) : 0;
}

bool rail::poll(packet_sink& sink) {
  polled_before_s_ = polled_s_;
  polled_s_ = clock_();
  std::array<epoll_event, 32> events;
  const int found = epoll_wait(epoll_.get(), events.data(), int(events.size()), 0);
  bool moved = false;
  for (int i = 0; i < found; ++i) {
    const auto peer = int(events[std::size_t(i)].data.u64);
    if (!of(peer).open) continue;
    if ((events[std::size_t(i)].events & EPOLLOUT) != 0) {
      write(peer, sink);
      moved = true;
    }
    if (of(peer).open && (events[std::size_t(i)].events & ~std::uint32_t{EPOLLOUT}) != 0)
      moved |= read(peer, sink);
  }
  return moved;
}

// Reads what is there, but not without end, so that other peers have their turn.
bool rail::read(int peer, packet_sink& sink) {
  connection& c = of(peer);
  constexpr std::size_t most_at_once = 4 << 20;
  for (std::size_t total = 0; total < most_at_once;) {
    std::array<iovec, most_pieces> parts;
    std::size_t n = 0, wanted = 0, next = c.next_piece;
    const auto add = [&](std::byte* to, std::size_t bytes) {
      parts[n++] = {to, bytes};
      wanted += bytes;
    };
    if (c.current)
      for (; next < c.where.size() && n < most_pieces; ++next)
        add(c.where[next].data, c.where[next].bytes);
    if (n < most_pieces && (!c.current || next == c.where.size()))
      add(ahead_.data(), ahead_.size());
    msghdr message{.msg_name = nullptr,
                   .msg_namelen = 0,
                   .msg_iov = parts.data(),
                   .msg_iovlen = n,
                   .msg_control = nullptr,
                   .msg_controllen = 0,
                   .msg_flags = 0};
    const ssize_t got = recvmsg(c.socket.get(), &message, MSG_DONTWAIT);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return total > 0;
      close(peer, std::strerror(errno), sink);
      return true;
    }
    if (got == 0) {
      close(peer, "the other rank has closed the connection", sink);
      return true;
    }
    total += std::size_t(got);
    if (!take(peer, std::size_t(got), sink) || std::size_t(got) < wanted) return true;
  }
  return true;
}

// So many bytes have been read: to where payload was expected, the rest to ahead_. False if the
// connection is closed.
bool rail::take(int peer, std::size_t bytes, packet_sink& sink) {
  connection& c = of(peer);
  const std::byte* from = nullptr;  // null: they are where they belong
  for (;;) {
    if (!c.current) {
      if (!from) from = ahead_.data();
      const std::size_t n = std::min(bytes, header_bytes - c.header_filled);
      std::memcpy(c.header.data() + c.header_filled, from, n);
      c.header_filled += n;
      from += n;
      bytes -= n;
      if (c.header_filled < header_bytes) return true;
      if (!begin(peer, sink)) return false;
    }
    for (; c.next_piece < c.where.size(); ++c.next_piece) {
      piece& p = c.where[c.next_piece];
      const std::size_t n = std::min(bytes, p.bytes);
      if (from && n > 0) {
        std::memcpy(p.data, from, n);
        from += n;
      }
      p.data += n;
      p.bytes -= n;
      bytes -= n;
      if (p.bytes > 0) return true;
    }
    finish(peer, sink);
    if (bytes == 0) return true;
  }
}

// A header is complete.
bool rail::begin(int peer, packet_sink& sink) {
  connection& c = of(peer);
  c.header_filled = 0;
  c.current = transport::parse(c.header);
  if (!c.current) {
    close(peer, "received bytes that are no header of a packet", sink);
    return false;
  }
  c.where.clear();
  c.next_piece = 0;
  sink.arrived(index_, peer, *c.current, c.where);
  return true;
}

// A packet is complete.
void rail::finish(int peer, packet_sink& sink) {
  connection& c = of(peer);
  const packet done = *c.current;
  c.current.reset();
  const double now_s = clock_();
  sink.complete(index_, peer, done, {.at_s = now_s, .late_s = now_s - polled_before_s_});
}

void rail::close(int peer, const std::string& why, packet_sink& sink) {
  of(peer).end();
  sink.failed(index_, peer, why);
}

void rail::abandon() {
  for (connection& c : connections_) c.end();
}

void rail::connection::end() {
  open = false;
  queue.clear();
  queued_bytes = 0;
  current.reset();
  // A child that the program has forked keeps the socket open, so closing alone tells the peer
  // nothing.
  shutdown(socket.get(), SHUT_RDWR);
  socket = file_descriptor();
}

}  // namespace railpass::internal::tcp
