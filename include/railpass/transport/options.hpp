// SPDX-License-Identifier: BSL-1.0
//
// Options of a transport.
#pragma once

#include "railpass/transport/wire.hpp"

#include <algorithm>
#include <cstdint>

namespace railpass::transport {

/// Options, the same on all ranks unless noted.
struct transport_options {
  /// Messages up to this size (at most 64 KiB) are sent eagerly if the receiver has room. Values
  /// from know() take precedence.
  std::int64_t eager_bytes = 16 << 10;
  /// Buffer space for the messages of each other rank that have no receive yet. Each message counts
  /// 256 bytes more; the last message may exceed the limit. A message that a receive waits for may
  /// overtake the messages that the sender then holds back.
  std::int64_t credit_bytes = 1 << 20;
  /// Smallest part of a message worth a packet of its own on a second rail; know() takes
  /// precedence.
  std::int64_t least_bytes = 8 << 10;
  /// A rail to a peer from which a message is expected has failed if the peer's host acknowledges
  /// nothing for this time, in seconds; 0: never. May differ between ranks.
  double silence_s = 5;
  /// The number of the first message, modulo 2^32.
  std::uint32_t first_id = 1;
};

/// The size limit for eager messages, independent of measured rail speeds: both ends of a credit
/// use the limit, but only one end knows the measurements.
inline std::int64_t most_small_bytes(const transport_options& options) {
  return std::min(options.credit_bytes, std::int64_t(most_eager_bytes));
}

}  // namespace railpass::transport
