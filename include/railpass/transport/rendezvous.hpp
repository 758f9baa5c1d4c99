// SPDX-License-Identifier: BSL-1.0
//
// Large messages in flight: announced under a number of the sender, granted and received under a
// number of the receiver.
#pragma once

#include "railpass/transport/message.hpp"

#include <cstdint>
#include <unordered_map>

namespace railpass::transport {

/// Messages by the numbers that this rank gave them: those announced without a grant yet, or those
/// granted that have not arrived completely.
class numbered_messages {
 public:
  explicit numbered_messages(std::uint32_t first_id) : next_id_(first_id) {}

  /// Returns the next unused number: numbers wrap around after 2^32 messages.
  std::uint32_t next_id() {
    while (messages_.contains(next_id_)) ++next_id_;
    return next_id_++;
  }
  /// Returns the number of the message.
  std::uint32_t add(const message_ptr& op) {
    const std::uint32_t id = next_id();
    messages_.emplace(id, op);
    return id;
  }
  /// The message of a number that the peer names; null if the peer knows no such message.
  message_ptr find(int peer, std::uint32_t id) const {
    const auto found = messages_.find(id);
    return found == messages_.end() || found->second->peer() != peer ? nullptr : found->second;
  }
  void remove(std::uint32_t id) { messages_.erase(id); }
  bool empty() const { return messages_.empty(); }

  /// Calls `visit` with every message.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [id, op] : messages_) visit(*op);
  }

 private:
  std::uint32_t next_id_;
  std::unordered_map<std::uint32_t, message_ptr> messages_;
};

}  // namespace railpass::transport
