// SPDX-License-Identifier: BSL-1.0
//
// The packets given to a rail, which the rail owns from then on. A packet's payload stays in the
// message's memory: this class keeps the message, by token, until the rail no longer needs the
// memory. The end of that need does not mean arrival: no peer acknowledges packets. Packets without
// a message's payload (control, requests, probes) have no token. The packets of a failed rail are
// lost, so the transport ends with the rail.
#pragma once

#include "railpass/transport/message.hpp"

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace railpass::transport {

class packets_under_way {
 public:
  /// Notes a packet that needs the message's memory; returns its token, which is not 0.
  std::uint64_t add(const message_ptr& op) {
    op->hold();
    messages_.emplace(++last_token_, op);
    return last_token_;
  }
  /// The rail no longer needs the memory. Returns the message if it has left completely; else null.
  message_ptr remove(std::uint64_t token) {
    const auto found = messages_.find(token);
    message_ptr op = std::move(found->second);
    messages_.erase(found);
    return op->let_go() ? op : nullptr;
  }
  bool empty() const { return messages_.empty(); }

  /// Calls `visit` with the message of every packet.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [token, op] : messages_) visit(*op);
  }

 private:
  std::unordered_map<std::uint64_t, message_ptr> messages_;
  std::uint64_t last_token_ = 0;
};

}  // namespace railpass::transport
