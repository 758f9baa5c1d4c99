// SPDX-License-Identifier: BSL-1.0
//
// The transport's packets as bytes on a rail: 40 bytes of header, little endian on every machine,
// then `length` bytes of payload. Packets contain no addresses.
//
// The table lists which packet a rank accepts from a peer, and which packets the rank sends in
// return. Every packet except farewell may use any rail. Any other packet ends the transport.
//
//   packet    accepted if                                          followed by, the other way
//   eager     credit was left for it, and none came with its       credit, once it is received;
//             sequence                                             rate, now and then
//   request   as for eager                                         grant and credit, once a receive
//                                                                  matches or drops the message
//   want      always                                               an offer, once there is such a
//                                                                  message and no credit for it
//   offer,    none came with its sequence, and no other offer      grant, if a receive matches or
//   overtaken waits for its turn                                   drops the message; else decline
//   decline   this rank's offer of that id waits for an answer     nothing
//   grant     this rank's request or offer of that id waits for    chunks of the wanted bytes; none
//             one, and asks for at most the announced bytes        if the grant is of 0 bytes
//   chunk     this rank's grant of that id still waits for these   rate, now and then
//             bytes
//   credit    always                                               nothing
//   rate      there is such a rail                                 nothing
//   probe     always                                               rate, if it could be timed
//   farewell  always; nothing may come after it over its rail      nothing
//
// No packet brings more credit than this rank has spent and not got back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace railpass::transport {

enum class packet_type : std::uint8_t {
  eager = 1,  ///< a whole message: channel in other_id, tag, sequence, payload; id as of a chunk
  request,    ///< announces a large message: channel in other_id, tag, sequence, id (the sender's),
              ///< value = its bytes
  grant,      ///< asks for the message: id (the sender's), other_id (the receiver's), value = bytes
  chunk,      ///< a part of a message: other_id (the receiver's), value = offset, payload; id = 1
              ///< if the rail certainly carried earlier packets to this peer at that time, else 0
  credit,     ///< no more than the credit
  rate,       ///< measured speed: id = rail, value = bytes per second; other_id = 1: a
              ///< probe, else 0
  farewell,   ///< the last packet of this rail
  probe,      ///< payload without use, sent to measure the rail; id as in a chunk
  want,       ///< a receive waits for such a message: channel in other_id, tag; value = 1: any tag,
              ///< else 0
  offer,      ///< announces a message of any size for which there is no credit: as a request
  overtaken,  ///< an offer that overtakes earlier messages of its channel
  decline     ///< no receive waits for the offered message any more: id (the sender's)
};

/// The channel of a message; a receive matches messages of its own channel only.
using channel = std::uint32_t;

/// The header of a packet; fields that a type does not use are 0. Factories and accessors are by
/// type, because `id`, `other_id` and `value` have a different meaning in each type.
struct packet {
  packet_type type = packet_type::credit;
  std::uint32_t credit = 0;  ///< bytes of buffered messages that the receiver has freed; all types
  std::int32_t tag = 0;
  std::uint32_t sequence = 0;  ///< of messages from one rank to another, modulo 2^32
  std::uint32_t id = 0;
  std::uint32_t other_id = 0;
  std::uint64_t value = 0;
  std::uint64_t length = 0;  ///< bytes of the payload
  bool operator==(const packet&) const = default;

  static constexpr packet eager(channel on, std::int32_t tag, std::uint32_t sequence,
                                std::uint64_t length, bool rail_was_busy) {
    return {.type = packet_type::eager,
            .tag = tag,
            .sequence = sequence,
            .id = rail_was_busy,
            .other_id = on,
            .length = length};
  }
  static constexpr packet request(channel on, std::int32_t tag, std::uint32_t sequence,
                                  std::uint32_t sender_id, std::uint64_t message_bytes) {
    return {.type = packet_type::request,
            .tag = tag,
            .sequence = sequence,
            .id = sender_id,
            .other_id = on,
            .value = message_bytes};
  }
  static constexpr packet offer(channel on, std::int32_t tag, std::uint32_t sequence,
                                std::uint32_t sender_id, std::uint64_t message_bytes,
                                bool overtakes) {
    packet p = request(on, tag, sequence, sender_id, message_bytes);
    p.type = overtakes ? packet_type::overtaken : packet_type::offer;
    return p;
  }
  static constexpr packet decline(std::uint32_t sender_id) {
    return {.type = packet_type::decline, .id = sender_id};
  }
  /// @param tag negative: any tag
  static constexpr packet want(channel on, std::int32_t tag) {
    return {.type = packet_type::want,
            .tag = tag < 0 ? 0 : tag,
            .other_id = on,
            .value = tag < 0 ? 1u : 0u};
  }
  static constexpr packet grant(std::uint32_t sender_id, std::uint32_t receiver_id,
                                std::uint64_t wanted_bytes) {
    return {.type = packet_type::grant,
            .id = sender_id,
            .other_id = receiver_id,
            .value = wanted_bytes};
  }
  static constexpr packet chunk(std::uint32_t receiver_id, std::uint64_t offset_bytes,
                                std::uint64_t length, bool rail_was_busy) {
    return {.type = packet_type::chunk,
            .id = rail_was_busy,
            .other_id = receiver_id,
            .value = offset_bytes,
            .length = length};
  }
  /// A packet without any other content; all other packets carry their credit along.
  static constexpr packet credit_alone() { return {.type = packet_type::credit}; }
  static constexpr packet rate(std::uint32_t rail, std::uint64_t bytes_per_s, bool of_probe) {
    return {.type = packet_type::rate, .id = rail, .other_id = of_probe, .value = bytes_per_s};
  }
  static constexpr packet farewell() { return {.type = packet_type::farewell}; }
  static constexpr packet probe(std::uint64_t length, bool rail_was_busy) {
    return {.type = packet_type::probe, .id = rail_was_busy, .length = length};
  }

  /// Whether the packet starts a message: eager, request or offer. Only these have a sequence.
  constexpr bool begins_message() const {
    return type == packet_type::eager || type == packet_type::request || is_offer();
  }
  constexpr bool is_offer() const {
    return type == packet_type::offer || type == packet_type::overtaken;
  }
  /// For packets that start a message, and for wants; the same packets have a tag.
  constexpr channel on() const { return other_id; }
  /// For wants.
  constexpr bool of_any_tag() const { return value == 1; }
  /// For packets that start a message: bytes of the whole message.
  constexpr std::uint64_t message_bytes() const {
    return type == packet_type::eager ? length : value;
  }
  /// For requests, offers, declines and grants.
  constexpr std::uint32_t sender_id() const { return id; }
  /// For grants and chunks.
  constexpr std::uint32_t receiver_id() const { return other_id; }
  /// For grants.
  constexpr std::uint64_t wanted_bytes() const { return value; }
  /// For chunks.
  constexpr std::uint64_t offset_bytes() const { return value; }
  /// For eager packets, chunks and probes.
  constexpr bool rail_was_busy() const { return id == 1; }
  /// For rates.
  constexpr std::uint32_t rail() const { return id; }
  constexpr std::uint64_t bytes_per_s() const { return value; }
  constexpr bool of_probe() const { return other_id == 1; }
};

inline constexpr std::size_t header_bytes = 40;
using packed_header = std::array<std::byte, header_bytes>;

/// Messages up to this size may be sent with their header, if the receiver has room.
inline constexpr std::uint64_t most_eager_bytes = 64 << 10;
/// The largest payload of any packet.
inline constexpr std::uint64_t most_payload_bytes = 64 << 20;
/// The largest message.
inline constexpr std::uint64_t most_message_bytes = std::uint64_t{1} << 60;

namespace detail {

inline constexpr std::uint16_t magic = 0x7052;  // "Rp"
inline constexpr std::uint8_t version = 7;

template <class T>
void store(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[i] = std::byte(std::uint8_t(std::uint64_t(value) >> (8 * i)));
}
template <class T>
T load(const std::byte* from) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t(from[i]) << (8 * i);
  return T(value);
}

inline bool is_valid(const packet& p) {
  if (!p.begins_message() && (p.sequence != 0 || (p.tag != 0 && p.type != packet_type::want)))
    return false;
  if (p.tag < 0) return false;
  switch (p.type) {
    case packet_type::eager:
      return p.length <= most_eager_bytes && p.id <= 1 && p.value == 0;
    case packet_type::request:
      return p.length == 0 && p.value > 0 && p.value <= most_message_bytes;
    case packet_type::grant:
    case packet_type::offer:
    case packet_type::overtaken:
      return p.length == 0 && p.value <= most_message_bytes;
    case packet_type::want:
      return p.length == 0 && p.id == 0 && (p.value == 0 || (p.value == 1 && p.tag == 0));
    case packet_type::decline:
      return p.length == 0 && p.other_id == 0 && p.value == 0;
    case packet_type::chunk:
      return p.length > 0 && p.length <= most_payload_bytes && p.id <= 1 &&
             p.value <= most_message_bytes - p.length;
    case packet_type::rate:
      return p.length == 0 && p.other_id <= 1 && p.value > 0;
    case packet_type::probe:
      return p.length <= most_eager_bytes && p.id <= 1 && p.other_id == 0 && p.value == 0;
    case packet_type::credit:
    case packet_type::farewell:
      return p.length == 0 && p.id == 0 && p.other_id == 0 && p.value == 0;
  }
  return false;
}

}  // namespace detail

inline packed_header pack(const packet& p) {
  packed_header to{};
  detail::store(&to[0], detail::magic);
  detail::store(&to[2], detail::version);
  detail::store(&to[3], std::uint8_t(p.type));
  detail::store(&to[4], p.credit);
  detail::store(&to[8], std::uint32_t(p.tag));
  detail::store(&to[12], p.sequence);
  detail::store(&to[16], p.id);
  detail::store(&to[20], p.other_id);
  detail::store(&to[24], p.value);
  detail::store(&to[32], p.length);
  return to;
}

/// Parses a header; empty if pack() cannot have made these bytes.
inline std::optional<packet> parse(std::span<const std::byte, header_bytes> from) {
  if (detail::load<std::uint16_t>(&from[0]) != detail::magic ||
      detail::load<std::uint8_t>(&from[2]) != detail::version)
    return std::nullopt;
  packet p;
  p.type = packet_type(detail::load<std::uint8_t>(&from[3]));
  p.credit = detail::load<std::uint32_t>(&from[4]);
  p.tag = std::int32_t(detail::load<std::uint32_t>(&from[8]));
  p.sequence = detail::load<std::uint32_t>(&from[12]);
  p.id = detail::load<std::uint32_t>(&from[16]);
  p.other_id = detail::load<std::uint32_t>(&from[20]);
  p.value = detail::load<std::uint64_t>(&from[24]);
  p.length = detail::load<std::uint64_t>(&from[32]);
  if (!detail::is_valid(p)) return std::nullopt;
  return p;
}

}  // namespace railpass::transport
