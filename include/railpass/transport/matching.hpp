// SPDX-License-Identifier: BSL-1.0
//
// Matches receives and messages. Messages of a rank match in the order in which they were sent,
// whichever rails carried them; receives match in the order in which they were posted.
#pragma once

#include "railpass/transport/message.hpp"
#include "railpass/transport/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace railpass::transport {

/// A message without a receive yet, or that arrived before its turn.
struct envelope {
  int source = 0;
  packet header;
  std::vector<std::byte> data;  // of an eager message
  bool complete = true;
  bool in_turn = false;
  message_ptr claimed;  // by a receive, before it was complete
  message_ptr from_me;  // a large message to this rank itself
};
using envelope_ptr = std::shared_ptr<envelope>;

/// The unmatched receives and messages of a channel, in order.
class mailbox {
 public:
  /// Takes the first receive that matches such a message; null: none. A receive of any tag matches
  /// the first message of its sender that no earlier receive matches. An overtaking message may not
  /// be that first message, so neither this receive nor later ones match it before the overtaken
  /// messages have matched.
  message_ptr take_posted(int source, const packet& h) {
    for (auto op = posted_.begin(); op != posted_.end(); ++op)
      if ((*op)->fits(source, h)) {
        message_ptr found = *op;
        if (found->tag() == any_tag && h.type == packet_type::overtaken) return nullptr;
        posted_.erase(op);
        return found;
      }
    return nullptr;
  }
  /// Takes the first message that the receive matches; null: none.
  envelope_ptr take_unexpected(const message& wanted) {
    for (auto e = unexpected_.begin(); e != unexpected_.end(); ++e)
      if (wanted.fits((*e)->source, (*e)->header)) {
        envelope_ptr found = *e;
        unexpected_.erase(e);
        return found;
      }
    return nullptr;
  }
  /// Keeps an unmatched receive or message.
  void post(message_ptr op) { posted_.push_back(std::move(op)); }
  void keep(envelope_ptr e) { unexpected_.push_back(std::move(e)); }

  const std::deque<message_ptr>& posted() const { return posted_; }
  std::deque<envelope_ptr> take_all_unexpected() { return std::exchange(unexpected_, {}); }

  bool is_idle() const { return posted_.empty() && unexpected_.empty(); }

  bool dropping = false;     ///< no receives come any more
  std::int64_t arrived = 0;  ///< messages from other ranks that have arrived, received or not

 private:
  std::deque<message_ptr> posted_;
  std::deque<envelope_ptr> unexpected_;
};

/// The order of one rank's messages, which are numbered modulo 2^32 from 0 on.
class turns {
 public:
  /// Whether no message of that number has arrived. Numbers more than half the range ahead are old.
  bool is_new(std::uint32_t sequence) const {
    return sequence - expected_ < std::uint32_t{1} << 31 && !early_.contains(sequence);
  }
  bool is_next(std::uint32_t sequence) const { return sequence == expected_; }
  /// Notes that the next message has been delivered.
  void pass() { ++expected_; }
  /// Keeps a new message that is not next.
  void keep(const envelope_ptr& e) { early_.emplace(e->header.sequence, e); }
  /// Takes the kept message whose turn it is, and counts it as delivered; null: it has not arrived.
  envelope_ptr take_next() {
    const auto next = early_.find(expected_);
    if (next == early_.end()) return nullptr;
    envelope_ptr e = next->second;
    early_.erase(next);
    pass();
    return e;
  }

 private:
  std::uint32_t expected_ = 0;
  std::map<std::uint32_t, envelope_ptr> early_;
};

}  // namespace railpass::transport
