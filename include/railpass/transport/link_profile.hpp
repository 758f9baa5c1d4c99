// SPDX-License-Identifier: BSL-1.0
//
// The transport's initial parameters for the rails to a peer: defaults, or results of sampling.hpp.
#pragma once

#include "railpass/transport/split.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace railpass::transport {

/// Sizes up to which a rail uses the first of two protocols; 0: never.
struct rail_thresholds {
  std::int64_t copy_bytes = 0;              ///< a small message's pieces are copied together
  std::int64_t eager_bytes = 16 << 10;      ///< a message is sent without asking; at most 64 KiB
  std::int64_t aggregate_bytes = 32 << 10;  ///< small waiting messages leave in one transmission
};

struct rail_profile {
  transfer_time time;      ///< from giving bytes to the rail until their arrival
  double handshake_s = 0;  ///< cost of asking before a large message
  rail_thresholds thresholds;
  bool spare = false;  ///< shares a bottleneck with better rails: see rail_outlook
};

/// The rails from one rank to another one.
struct link_profile {
  std::vector<rail_profile> rails;
  std::int64_t least_bytes = 8 << 10;  ///< smallest part of a message worth a packet of its own
};

/// The plan for one message while no other message is in flight.
struct message_plan {
  bool eager = false;
  std::vector<std::int64_t> bytes;  ///< by rail
  double seconds = 0;               ///< until arrival
};

inline message_plan plan_of(const link_profile& link, std::int64_t bytes) {
  std::vector<rail_outlook> rails;
  for (const rail_profile& r : link.rails)
    rails.push_back({.time = &r.time, .busy_s = 0, .spare = r.spare});
  message_plan plan{.eager = false, .bytes = std::vector<std::int64_t>(rails.size()), .seconds = 0};
  const std::size_t first = soonest(rails, double(bytes));
  if (bytes <= link.rails[first].thresholds.eager_bytes) {
    plan.eager = true;
    plan.bytes[first] = bytes;
    plan.seconds = link.rails[first].time.time_s(double(bytes));
    return plan;
  }
  plan.seconds = split(rails, bytes, link.least_bytes, plan.bytes);
  double asking_s = std::numeric_limits<double>::infinity();
  for (const rail_profile& r : link.rails) asking_s = std::min(asking_s, r.handshake_s);
  plan.seconds += asking_s;
  return plan;
}

}  // namespace railpass::transport
