// SPDX-License-Identifier: BSL-1.0
//
// The interface of a rail: one network between the ranks that carries packets in order per peer.
// Real rails are in lib/rails, a simulated one in tests/support.
#pragma once

#include "railpass/transport/pieces.hpp"
#include "railpass/transport/wire.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace railpass::transport {

/// A packet to send. The payload's memory is the caller's until the token comes back.
struct outgoing {
  packet header;
  std::vector<piece> payload;  ///< header.length bytes together
  std::uint64_t token = 0;     ///< 0: no notice wanted
  bool copy = false;           ///< copying the payload is probably faster than reading it later
};

/// When the last byte of a packet arrived, by the receiver's clock.
struct arrival {
  double at_s = 0;
  double late_s = 0;  ///< the receiver may have noticed the arrival this much later
};

/// Receives events from a rail. All calls come from inside poll, `sent` also from inside send.
class packet_sink {
 public:
  /// A header has arrived.
  /// @param where receives the memory for the payload, header.length bytes in total, which must
  ///   last until `complete`; packets without payload are complete at once
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
  /// Sends the packets one after the other, as one transmission if possible. The rail keeps what
  /// the network does not accept yet.
  virtual void send(int peer, std::vector<outgoing>& packets, packet_sink& sink) = 0;
  /// Bytes given to `send` that may not have arrived at the peer's host.
  virtual std::int64_t under_way_bytes(int peer) = 0;
  /// Bytes for all peers together.
  virtual std::int64_t under_way_bytes() = 0;
  /// Time for which the peer's host has not acknowledged the last packet; 0: everything is
  /// acknowledged. Hosts acknowledge whether or not the peer's process reads. Empty: the rail
  /// detects lost peers by itself.
  virtual std::optional<double> unanswered_s(int) { return std::nullopt; }
  /// Lets the rail work without blocking; returns whether anything moved.
  virtual bool poll(packet_sink& sink) = 0;
  /// Abandons the rail: nothing more is sent or received, all peers' rails fail, and no memory of
  /// messages is accessed any more. Does not call the sink.
  virtual void abandon() = 0;
  /// A descriptor that becomes readable when poll has something to do; -1: the rail advances only
  /// while it is polled.
  virtual int descriptor() const = 0;
  /// The name for users.
  virtual const std::string& name() const = 0;
  /// The name and further marks that distinguish rails of this name; rails with equal marks have
  /// equal times.
  virtual std::string marks() const { return name(); }
};

}  // namespace railpass::transport
