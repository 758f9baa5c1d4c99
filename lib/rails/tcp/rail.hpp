// SPDX-License-Identifier: BSL-1.0
//
// A rail over TCP: one connection to each other rank, over one interface.
#pragma once

#include "lib/rails/tcp/connect.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/transport/packet_rail.hpp"

#include <deque>
#include <optional>

namespace railpass::internal::tcp {

class rail final : public transport::packet_rail {
 public:
  /// Takes the sockets. `index` identifies this rail for the sink. Throws error if the system has
  /// no epoll descriptor left.
  rail(int index, connected_rail connected, clock_function clock = steady_clock_s);

  void send(int peer, std::vector<transport::outgoing>& packets,
            transport::packet_sink& sink) override;
  std::int64_t under_way_bytes(int peer) override;
  std::int64_t under_way_bytes() override;
  std::optional<double> unanswered_s(int peer) override;
  bool poll(transport::packet_sink& sink) override;
  void abandon() override;
  int descriptor() const override { return epoll_.get(); }
  const std::string& name() const override { return name_; }
  std::string marks() const override { return marks_; }

 private:
  struct waiting {
    transport::packed_header header;
    std::vector<transport::piece> payload;
    std::vector<std::byte> copied;  // instead of both: packets with their payload, one by one
    std::vector<std::uint64_t> copied_tokens;
    std::uint64_t token = 0;
    std::size_t sent_bytes = 0;  // of header and payload
    std::size_t bytes = 0;
  };

  struct connection {
    file_descriptor socket;
    bool open = true;
    bool wants_room = false;  // epoll reports when the socket can be written to
    std::deque<waiting> queue;
    std::int64_t queued_bytes = 0;
    bool quiet = true;  // nothing was queued since the kernel last had nothing under way
    // The header being received, or the payload of `current`.
    transport::packed_header header;
    std::size_t header_filled = 0;
    std::optional<transport::packet> current;
    std::vector<transport::piece> where;
    std::size_t next_piece = 0;

    void end();
  };

  connection& of(int peer) { return connections_[std::size_t(peer)]; }
  void write(int peer, transport::packet_sink& sink);
  bool read(int peer, transport::packet_sink& sink);
  bool take(int peer, std::size_t bytes, transport::packet_sink& sink);
  bool begin(int peer, transport::packet_sink& sink);
  void finish(int peer, transport::packet_sink& sink);
  void close(int peer, const std::string& why, transport::packet_sink& sink);
  void watch(int peer, bool room);

  int index_;
  std::string name_, marks_;
  clock_function clock_;
  file_descriptor epoll_;
  std::vector<connection> connections_;  // by rank
  std::vector<std::byte> ahead_;         // data read beyond the expected payload
  double polled_s_, polled_before_s_;
};

}  // namespace railpass::internal::tcp
