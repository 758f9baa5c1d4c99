// SPDX-License-Identifier: BSL-1.0
//
// What the transport's packets look like on a rail: 40 bytes of header, little endian whatever the
// machine, then `length` bytes of payload. No address ever travels.
//
// Which packet may follow which: what a rank accepts from a peer, and what it sends because of it.
// All but the farewell may come over any rail; anything else ends the transport.
//
//   packet    accepted if                                          followed by, the other way
//   eager     credit was left for it, and none came with its       credit, once it is received;
//             sequence                                             rate, now and then
//   request   the same                                             grant and credit, once a receive
//                                                                  meets it or nobody will
//   want      always                                               an offer, once there is such a
//                                                                  message and no credit for it
//   offer,    none came with its sequence, and no other offer      grant, if a receive meets it now
//   overtaken waits for its turn                                   or nobody will; else decline
//   decline   this rank's offer of that id waits for an answer     nothing
//   grant     this rank's request or offer of that id waits for    chunks of so many bytes; none
//             one, and no more is asked for than that announced    of 0
//   chunk     this rank's grant of that id still waits for these   rate, now and then
//             bytes
//   credit    always                                               nothing
//   rate      there is such a rail                                 nothing
//   probe     always                                               rate, if it could be timed
//   farewell  always; nothing may come after it over its rail      nothing
//
// Each brings no more credit than this rank has spent and not got back.
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
  grant,      ///< asks for it: id (the sender's), other_id (the receiver's), value = bytes wanted
  chunk,      ///< a part of it: other_id (the receiver's), value = offset, payload; id = 1 if the
              ///< rail surely carried earlier packets to this peer when it got this one, else 0
  credit,     ///< nothing but the credit
  rate,       ///< how quick packets came: id = rail, value = bytes per second; other_id = 1: a
              ///< probe, else 0
  farewell,   ///< the last packet of this rail
  probe,      ///< payload that nobody needs, sent for how quick it comes; id as of a chunk
  want,       ///< somebody waits for such a message: channel in other_id, tag; value = 1: any tag,
              ///< else 0
  offer,      ///< announces a message of any size for which there is no credit: as a request
  overtaken,  ///< the same of one before which others of its channel were begun and did not leave
  decline     ///< nobody waits for what was offered any more: id (the sender's)
};

/// Whose messages these are; a receive meets only those of its own channel.
using channel = std::uint32_t;

/// The fields that a type does not have are 0. Made and read by type: `id`, `other_id` and `value`
/// mean something else in each.
struct packet {
  packet_type type = packet_type::credit;
  std::uint32_t credit = 0;  ///< bytes of buffered messages the receiver has got rid of; all types
  std::int32_t tag = 0;
  std::uint32_t sequence = 0;  ///< of messages from one rank to another, modulo 2^32
  std::uint32_t id = 0;
  std::uint32_t other_id = 0;
  std::uint64_t value = 0;
  std::uint64_t length = 0;  ///< of the payload
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
  /// `tag` < 0: any.
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
  /// For what goes back by itself; all others bring their credit along.
  static constexpr packet credit_alone() { return {.type = packet_type::credit}; }
  static constexpr packet rate(std::uint32_t rail, std::uint64_t bytes_per_s, bool of_probe) {
    return {.type = packet_type::rate, .id = rail, .other_id = of_probe, .value = bytes_per_s};
  }
  static constexpr packet farewell() { return {.type = packet_type::farewell}; }
  static constexpr packet probe(std::uint64_t length, bool rail_was_busy) {
    return {.type = packet_type::probe, .id = rail_was_busy, .length = length};
  }

  /// Whether it begins a message: an eager one, a request or an offer. Only these are in sequence.
  constexpr bool begins_message() const {
    return type == packet_type::eager || type == packet_type::request || is_offer();
  }
  constexpr bool is_offer() const {
    return type == packet_type::offer || type == packet_type::overtaken;
  }
  /// Of what begins a message, or a want; a tag, too.
  constexpr channel on() const { return other_id; }
  /// Of a want.
  constexpr bool of_any_tag() const { return value == 1; }
  /// Of what begins a message: of the whole one.
  constexpr std::uint64_t message_bytes() const {
    return type == packet_type::eager ? length : value;
  }
  /// Of a request, an offer, a decline or a grant.
  constexpr std::uint32_t sender_id() const { return id; }
  /// Of a grant or a chunk.
  constexpr std::uint32_t receiver_id() const { return other_id; }
  /// Of a grant.
  constexpr std::uint64_t wanted_bytes() const { return value; }
  /// Of a chunk.
  constexpr std::uint64_t offset_bytes() const { return value; }
  /// Of an eager one, a chunk or a probe.
  constexpr bool rail_was_busy() const { return id == 1; }
  /// Of a rate.
  constexpr std::uint32_t rail() const { return id; }
  constexpr std::uint64_t bytes_per_s() const { return value; }
  constexpr bool of_probe() const { return other_id == 1; }
};

inline constexpr std::size_t header_bytes = 40;
using packed_header = std::array<std::byte, header_bytes>;

/// Messages up to this are sent with their header, if the receiver has room for them.
inline constexpr std::uint64_t most_eager_bytes = 64 << 10;
/// Payload of any packet.
inline constexpr std::uint64_t most_payload_bytes = 64 << 20;
/// Of a message.
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

/// Nothing if these bytes are no header that pack() makes.
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
