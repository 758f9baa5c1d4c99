// SPDX-License-Identifier: BSL-1.0
//
// Which receive gets which message: those of a rank in the order in which they were sent, whatever
// rails carried them, and receives in the order in which they were posted.
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

/// A message that nobody has asked for yet, or that came before its turn.
struct envelope {
  int source = 0;
  packet header;
  std::vector<std::byte> data;  // of an eager one
  bool complete = true;
  bool in_turn = false;
  message_ptr claimed;  // by a receive, before it was complete
  message_ptr from_me;  // a large one to this rank itself
};
using envelope_ptr = std::shared_ptr<envelope>;

/// Of a channel: receives and messages that have not met yet, in order.
class mailbox {
 public:
  /// The first receive that takes such a message; null: none does. A receive of any tag takes the
  /// first message of its sender that no earlier receive takes. Whether that is the one that has
  /// overtaken is not known before those it has overtaken have met theirs, so that neither this
  /// receive nor those behind take it.
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
  /// The first message that the receive takes; null: none.
  envelope_ptr take_unexpected(const message& wanted) {
    for (auto e = unexpected_.begin(); e != unexpected_.end(); ++e)
      if (wanted.fits((*e)->source, (*e)->header)) {
        envelope_ptr found = *e;
        unexpected_.erase(e);
        return found;
      }
    return nullptr;
  }
  /// What met nothing waits.
  void post(message_ptr op) { posted_.push_back(std::move(op)); }
  void keep(envelope_ptr e) { unexpected_.push_back(std::move(e)); }

  const std::deque<message_ptr>& posted() const { return posted_; }
  std::deque<envelope_ptr> take_all_unexpected() { return std::exchange(unexpected_, {}); }

  /// Nothing waits here, nor has begun that has not ended.
  bool is_idle() const { return posted_.empty() && unexpected_.empty() && unsent == 0; }

  bool dropping = false;     ///< nobody receives any more
  std::int64_t unsent = 0;   ///< messages to other ranks that were begun and have not left
  std::int64_t arrived = 0;  ///< messages that have come from other ranks, received or not

 private:
  std::deque<message_ptr> posted_;
  std::deque<envelope_ptr> unexpected_;
};

/// Whose turn it is of the messages of one rank, which are numbered modulo 2^32 from 0 on.
class turns {
 public:
  /// Whether none of that number has come. (Those behind count as ahead from half of all on.)
  bool is_new(std::uint32_t sequence) const {
    return sequence - expected_ < std::uint32_t{1} << 31 && !early_.contains(sequence);
  }
  bool is_next(std::uint32_t sequence) const { return sequence == expected_; }
  /// The next one has been handed on.
  void pass() { ++expected_; }
  /// Keeps a new one that is not next.
  void keep(const envelope_ptr& e) { early_.emplace(e->header.sequence, e); }
  /// Of those kept, the one whose turn it is now, which has passed with that; null: it has not
  /// come.
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
