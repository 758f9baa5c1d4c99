// SPDX-License-Identifier: BSL-1.0
//
// Large messages in flight: announced under a number of the sender, granted and received under a
// number of the receiver. Each rank has one sequence of numbers for both.
#pragma once

#include "railpass/transport/message.hpp"

#include <cstdint>
#include <unordered_map>

namespace railpass::transport {

class rendezvous {
 public:
  explicit rendezvous(std::uint32_t first_id) : next_id_(first_id) {}

  // ---- the sender ----

  /// Returns the number of the announcement.
  std::uint32_t announce(const message_ptr& op) {
    const std::uint32_t id = free_id(requested_);
    requested_.emplace(id, op);
    return id;
  }
  /// Takes an announced message of which the peer asks for `wanted_bytes`; null if the peer got no
  /// such announcement.
  message_ptr take_announced(int peer, std::uint32_t sender_id, std::int64_t wanted_bytes) {
    const auto found = requested_.find(sender_id);
    if (found == requested_.end() || found->second->peer() != peer ||
        wanted_bytes > found->second->capacity_bytes())
      return nullptr;
    message_ptr op = found->second;
    requested_.erase(found);
    return op;
  }
  /// Takes an announced message that the peer declines; null as above.
  message_ptr take_declined(int peer, std::uint32_t sender_id) {
    return take_announced(peer, sender_id, 0);
  }
  /// Ends the sends announced to the peer with at most `most_copied_bytes`.
  void end_early(int peer, std::int64_t most_copied_bytes) {
    for (const auto& [id, op] : requested_)
      if (op->peer() == peer && op->bytes() <= most_copied_bytes) op->end_early();
  }
  /// Calls `visit` with every announced message that has no grant yet.
  template <class Visit>
  void for_each_announced(const Visit& visit) const {
    for (const auto& [id, op] : requested_) visit(*op);
  }
  /// Whether every announced message has been granted or declined.
  bool all_taken() const { return requested_.empty(); }

  // ---- the receiver ----

  /// Returns the number of the grant. A grant of 0 bytes is not stored.
  std::uint32_t expect(const message_ptr& op) {
    const std::uint32_t id = free_id(receiving_);
    if (op->bytes() > 0) receiving_.emplace(id, op);
    return id;
  }
  /// The message to which a peer's part belongs; null if the peer has no such grant.
  message_ptr expected(int peer, std::uint32_t receiver_id) const {
    const auto found = receiving_.find(receiver_id);
    if (found == receiving_.end() || found->second->peer() != peer) return nullptr;
    return found->second;
  }
  /// The whole message has arrived.
  void end(std::uint32_t receiver_id) { receiving_.erase(receiver_id); }

  /// Calls `mark` with every peer of which something is expected: a grant, or data.
  template <class Mark>
  void mark_awaited(const Mark& mark) const {
    for (const auto* const some : {&requested_, &receiving_})
      for (const auto& [id, op] : *some) mark(op->peer());
  }

 private:
  using by_id = std::unordered_map<std::uint32_t, message_ptr>;

  // The next unused number: numbers wrap around after 2^32 messages.
  std::uint32_t free_id(const by_id& named) {
    while (named.contains(next_id_)) ++next_id_;
    return next_id_++;
  }

  std::uint32_t next_id_;
  by_id requested_;  // by the sender's id
  by_id receiving_;  // by the receiver's id
};

}  // namespace railpass::transport
