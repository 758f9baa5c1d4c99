// SPDX-License-Identifier: BSL-1.0
//
// The interface of strategies, and helpers for them. A strategy decides which waiting messages an
// idle rail carries next. The rails themselves are in packet_rail.hpp.
#pragma once

#include "railpass/transport/split.hpp"

#include <cstdint>
#include <span>

namespace railpass::transport {

/// The rails to one peer. Only the idle rail may be given anything now.
struct rails_view {
  std::span<const rail_outlook> rails;
  std::int64_t least_bytes = 1;  ///< smallest part of a message worth a packet of its own
  std::int64_t aggregate_bytes = 32 << 10;  ///< most bytes worth one transmission of the idle rail
};

/// A large message to the peer with bytes that no rail carries yet.
struct large_view {
  std::int64_t bytes = 0;                       ///< of the message
  std::int64_t left_bytes = 0;                  ///< bytes that no rail carries yet, at least 1
  std::span<const std::int64_t> carried_bytes;  ///< of the message, by each rail
  std::int64_t waiting_bytes = 0;               ///< left_bytes of all messages to the peer, summed
};

/// A strategy has no state: the transport asks again whenever a rail becomes idle. Earlier answers
/// bind no rail, so an idle rail takes over bytes that another rail was expected to carry.
class strategy {
 public:
  virtual ~strategy() = default;
  /// Returns how many of the waiting small messages the idle rail carries in one transmission; 0:
  /// the messages wait for another rail.
  /// @param sizes bytes of each message, in order, at least one
  virtual std::size_t small(std::size_t idle_rail, const rails_view& rails,
                            std::span<const std::int64_t> sizes) const = 0;
  /// Returns how many of the left bytes the idle rail carries; 0: none now. The transport may hand
  /// over only a part of them, and asks again.
  virtual std::int64_t large(std::size_t idle_rail, const rails_view& rails,
                             const large_view& l) const = 0;
};

namespace detail {

/// The number of messages that fit into one transmission.
inline std::size_t as_many_as_fit(const rails_view& rails, std::span<const std::int64_t> sizes) {
  std::int64_t sum = 0;
  std::size_t n = 0;
  while (n < sizes.size() && (n == 0 || sum + sizes[n] <= rails.aggregate_bytes)) sum += sizes[n++];
  return n;
}

/// This rail's share of all waiting bytes by the exact split.
inline std::int64_t exact_share(std::size_t rail, const rails_view& rails, const large_view& l) {
  std::int64_t shares[most_rails] = {};
  split(rails.rails, l.waiting_bytes, rails.least_bytes, shares);
  return std::min(shares[rail], l.left_bytes);
}

/// All left bytes, unless another rail has started the message.
inline std::int64_t whole(std::size_t rail, const large_view& l) {
  return l.left_bytes == l.bytes || l.carried_bytes[rail] > 0 ? l.left_bytes : 0;
}

/// The bytes missing of this rail's share if the message is split by fixed weights. Weights may
/// have changed since the message started. If all shares are complete, the idle rail carries the
/// rest.
inline std::int64_t fixed_share(std::size_t rail, std::span<const double> weights,
                                const large_view& l) {
  std::int64_t shares[most_rails] = {};
  split_by_weight(weights, l.bytes, shares);
  std::int64_t missing = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    missing += std::max<std::int64_t>(0, shares[i] - l.carried_bytes[i]);
  if (missing == 0) return l.left_bytes;
  return std::clamp<std::int64_t>(shares[rail] - l.carried_bytes[rail], 0, l.left_bytes);
}

inline std::size_t lowest_latency(std::span<const rail_outlook> rails) {
  return std::size_t(std::min_element(rails.begin(), rails.end(),
                                      [](const rail_outlook& a, const rail_outlook& b) {
                                        return a.time->latency_s() < b.time->latency_s();
                                      }) -
                     rails.begin());
}

}  // namespace detail
}  // namespace railpass::transport
