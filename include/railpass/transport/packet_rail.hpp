// SPDX-License-Identifier: BSL-1.0
//
// What the transport drives: one network between the ranks, which carries packets in order per
// peer. Real ones are in lib/rails, a simulated one in tests/support.
#pragma once

#include "railpass/transport/pieces.hpp"
#include "railpass/transport/wire.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace railpass::transport {

/// A packet to be sent. The payload's memory is the caller's until its token comes back.
struct outgoing {
  packet header;
  std::vector<piece> payload;  ///< header.length bytes together
  std::uint64_t token = 0;     ///< 0: nobody wants to know
  bool copy = false;  ///< copying the payload is thought to be quicker than reading it later
};

/// When the last byte of a packet was there, by the receiver's clock.
struct arrival {
  double at_s = 0;
  double late_s = 0;  ///< the receiver may have noticed that so much later
};

/// Who a rail tells what happens. All calls come from inside poll, `sent` also from inside send.
class packet_sink {
 public:
  /// A header has come; `where` gets the memory for the payload, header.length bytes together,
  /// which must last until `complete`. Packets without payload are complete at once.
  virtual void arrived(int rail, int peer, const packet& header, std::vector<piece>& where) = 0;
  virtual void complete(int rail, int peer, const packet& header, const arrival& timing) = 0;
  /// The memory of a packet that was sent is no longer needed.
  virtual void sent(std::uint64_t token) = 0;
  /// Nothing more can be sent to or received from this peer on this rail.
  virtual void failed(int rail, int peer, const std::string& why) = 0;

 protected:
  ~packet_sink() = default;
};

class packet_rail {
 public:
  virtual ~packet_rail() = default;
  /// Sends the packets one behind the other, as one transmission where that is possible; what the
  /// network does not take yet is kept.
  virtual void send(int peer, std::vector<outgoing>& packets, packet_sink& sink) = 0;
  /// Bytes given to `send` that are not known to have arrived at the other host.
  virtual std::int64_t under_way_bytes(int peer) = 0;
  /// The same for all peers together.
  virtual std::int64_t under_way_bytes() = 0;
  /// How long nothing has come from the peer's host that would acknowledge what this one sent last;
  /// 0: all is acknowledged. It is whether or not the peer's process reads. Nothing: the rail
  /// notices by itself when a peer is lost.
  virtual std::optional<double> unanswered_s(int) { return std::nullopt; }
  /// Lets the rail work, without blocking. Whether anything moved.
  virtual bool poll(packet_sink& sink) = 0;
  /// Gives up: nothing more is sent or received, all peers' rails fail, and nobody's memory is
  /// touched any more. Calls no sink.
  virtual void abandon() = 0;
  /// A descriptor that becomes readable when poll has something to do; -1: the rail advances only
  /// while it is polled.
  virtual int descriptor() const = 0;
  /// What a person knows it by.
  virtual const std::string& name() const = 0;
  /// That, and what tells it from another rail of this name: if it is the same, so are its times.
  virtual std::string marks() const { return name(); }
};

}  // namespace railpass::transport
