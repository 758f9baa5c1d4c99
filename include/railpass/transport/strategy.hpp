// SPDX-License-Identifier: BSL-1.0
//
// What a rail that has become idle shall carry next: the decision between the messages that wait
// and the rails that carry them.
#pragma once

#include "railpass/transport/split.hpp"

#include <cstdint>
#include <span>

namespace railpass::transport {

/// The rails to one peer. Those that are not idle must not be given anything now.
struct rails_view {
  std::span<const rail_outlook> rails;
  std::int64_t least_bytes = 1;  ///< smallest part of a message worth a packet of its own
  std::int64_t aggregate_bytes = 32
                                 << 10;  ///< most that is worth one transmission of the idle rail
};

/// A large message to this peer that still has bytes nobody carries, and what else waits.
struct large_view {
  std::int64_t bytes = 0;                       ///< of the message
  std::int64_t left_bytes = 0;                  ///< of those nobody carries yet, at least 1
  std::span<const std::int64_t> carried_bytes;  ///< of the message, by each rail
  std::int64_t waiting_bytes = 0;               ///< left_bytes of all messages to the peer together
};

/// Has no state: it is asked again whenever a rail becomes idle, so that what it said before binds
/// nobody, and an idle rail takes over what another one was expected to carry.
class strategy {
 public:
  virtual ~strategy() = default;
  /// How many of the small messages that wait the idle rail shall carry in one transmission; 0:
  /// they shall wait for another rail. `sizes`: of each in bytes, in order, at least one.
  virtual std::size_t small(std::size_t idle_rail, const rails_view& rails,
                            std::span<const std::int64_t> sizes) const = 0;
  /// How many of the bytes left the idle rail shall carry; 0: none now. Of many bytes the transport
  /// hands over a part only, and asks again.
  virtual std::int64_t large(std::size_t idle_rail, const rails_view& rails,
                             const large_view& l) const = 0;
};

namespace detail {

/// Those that fit into one transmission.
inline std::size_t as_many_as_fit(const rails_view& rails, std::span<const std::int64_t> sizes) {
  std::int64_t sum = 0;
  std::size_t n = 0;
  while (n < sizes.size() && (n == 0 || sum + sizes[n] <= rails.aggregate_bytes)) sum += sizes[n++];
  return n;
}

/// What the exact split gives this rail of all that waits.
inline std::int64_t exact_share(std::size_t rail, const rails_view& rails, const large_view& l) {
  std::int64_t shares[most_rails] = {};
  split(rails.rails, l.waiting_bytes, rails.least_bytes, shares);
  return std::min(shares[rail], l.left_bytes);
}

/// All that is left, unless another rail has begun the message.
inline std::int64_t whole(std::size_t rail, const large_view& l) {
  return l.left_bytes == l.bytes || l.carried_bytes[rail] > 0 ? l.left_bytes : 0;
}

/// What is missing of the rail's part when the message is split by fixed weights. Should weights
/// have changed since it was begun, whoever asks carries what nobody's part has.
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
