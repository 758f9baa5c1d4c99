// SPDX-License-Identifier: BSL-1.0
//
// Large messages under way: announced by a number of the sender's, asked for and received by a
// number of the receiver's. Each rank has one row of numbers for both.
#pragma once

#include "railpass/transport/message.hpp"

#include <cstdint>
#include <unordered_map>

namespace railpass::transport {

class rendezvous {
 public:
  explicit rendezvous(std::uint32_t first_id) : next_id_(first_id) {}

  // ---- the sender ----

  /// The number that the message is announced with.
  std::uint32_t announce(const message_ptr& op) {
    const std::uint32_t id = free_id(requested_);
    requested_.emplace(id, op);
    return id;
  }
  /// Whom a peer asks for so many bytes of; null if no such message was announced to it.
  message_ptr take_announced(int peer, std::uint32_t sender_id, std::int64_t wanted_bytes) {
    const auto found = requested_.find(sender_id);
    if (found == requested_.end() || found->second->peer() != peer ||
        wanted_bytes > found->second->capacity_bytes())
      return nullptr;
    message_ptr op = found->second;
    requested_.erase(found);
    return op;
  }
  /// The peer wants none of it; null as before.
  message_ptr take_declined(int peer, std::uint32_t sender_id) {
    return take_announced(peer, sender_id, 0);
  }
  /// What was announced to the peer and has up to so many bytes ends for who sends it.
  void end_early(int peer, std::int64_t most_copied_bytes) {
    for (const auto& [id, op] : requested_)
      if (op->peer() == peer && op->bytes() <= most_copied_bytes) op->end_early();
  }
  /// Tells `visit` of every message that was announced and not asked for.
  template <class Visit>
  void for_each_announced(const Visit& visit) const {
    for (const auto& [id, op] : requested_) visit(*op);
  }
  /// Whether everything that was announced has been asked for.
  bool all_taken() const { return requested_.empty(); }

  // ---- the receiver ----

  /// The number by which its bytes are asked for. One of no bytes is not waited for.
  std::uint32_t expect(const message_ptr& op) {
    const std::uint32_t id = free_id(receiving_);
    if (op->bytes() > 0) receiving_.emplace(id, op);
    return id;
  }
  /// What a part from a peer belongs to; null if nothing of that number was asked for there.
  message_ptr expected(int peer, std::uint32_t receiver_id) const {
    const auto found = receiving_.find(receiver_id);
    if (found == receiving_.end() || found->second->peer() != peer) return nullptr;
    return found->second;
  }
  /// All of it has come.
  void end(std::uint32_t receiver_id) { receiving_.erase(receiver_id); }

  /// Tells `mark` of every peer that something is awaited of: to ask, or to send what was asked
  /// for.
  template <class Mark>
  void mark_awaited(const Mark& mark) const {
    for (const auto* const some : {&requested_, &receiving_})
      for (const auto& [id, op] : *some) mark(op->peer());
  }

 private:
  using by_id = std::unordered_map<std::uint32_t, message_ptr>;

  // The next one that names no other message: after 2^32 of them numbers come again.
  std::uint32_t free_id(const by_id& named) {
    while (named.contains(next_id_)) ++next_id_;
    return next_id_++;
  }

  std::uint32_t next_id_;
  by_id requested_;  // by the sender's id
  by_id receiving_;  // by the receiver's id
};

}  // namespace railpass::transport
