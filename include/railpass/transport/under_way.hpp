// SPDX-License-Identifier: BSL-1.0
//
// Who owns what has been given to a rail. A packet is the rail's from then on, and nobody else has
// it any more. Its payload stays where it is, in the message's memory: the message is kept here, by
// token, until the rail no longer needs that. This says nothing of whether the packet has arrived:
// no peer acknowledges packets, and one without a payload of a message (control, requests, probes)
// has no token. So what a rail that fails was given is lost, and the transport ends with it.
#pragma once

#include "railpass/transport/message.hpp"

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace railpass::transport {

class packets_under_way {
 public:
  /// A packet is about to go that needs the message's memory. Its token, not 0.
  std::uint64_t add(const message_ptr& op) {
    op->hold();
    messages_.emplace(++last_token_, op);
    return last_token_;
  }
  /// The rail no longer needs the memory. The message, if all of it has left; else null.
  message_ptr remove(std::uint64_t token) {
    const auto found = messages_.find(token);
    message_ptr op = std::move(found->second);
    messages_.erase(found);
    return op->let_go() ? op : nullptr;
  }
  bool empty() const { return messages_.empty(); }

  /// Tells `visit` of the message of every packet.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [token, op] : messages_) visit(*op);
  }

 private:
  std::unordered_map<std::uint64_t, message_ptr> messages_;
  std::uint64_t last_token_ = 0;
};

}  // namespace railpass::transport
