// SPDX-License-Identifier: BSL-1.0
//
// Messages that wait to be sent to a peer: for a rail, for credit, or until the peer asks for them.
#pragma once

#include "railpass/transport/message.hpp"
#include "railpass/transport/packet_rail.hpp"
#include "railpass/transport/strategy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace railpass::transport {

class outbox {
 public:
  bool empty() const { return control_.empty() && small_.empty() && large_.empty(); }

  /// Control packets are few and small, so they leave at once.
  void add_control(const packet& p) { control_.push_back(p); }
  bool has_control() const { return !control_.empty(); }
  template <class Take>
  void take_control(const Take& take) {
    for (const packet& p : control_) take(p);
    control_.clear();
  }

  /// Adds a started message, which leaves as a packet of its own or as its announcement.
  void add(message_ptr op) { small_.push_back(std::move(op)); }
  std::size_t num_small() const { return small_.size(); }
  const message& small(std::size_t i) const { return *small_[i]; }
  /// Takes the first message, with its number among all messages to the peer.
  std::pair<message_ptr, std::uint32_t> take_small() {
    message_ptr op = std::move(small_.front());
    small_.pop_front();
    return {std::move(op), next_sequence_++};
  }

  // ---- without credit ----

  /// A receive at the peer waits for such a message.
  void note_want(channel on, int tag) {
    if (wants_.emplace(on, tag).second) looked_at_ = ended_early_ = 0;
  }
  /// There is credit again: messages leave in their order.
  void forget_wants() { wants_.clear(); }
  /// While an offer has no answer, no message leaves in order, because the offered one may come
  /// back.
  bool awaits_answer() const { return offered_ != nullptr; }
  struct offer {
    message_ptr op;
    std::uint32_t sequence = 0;
    bool overtakes = false;  // earlier messages of its channel
  };
  /// Takes the first wanted message, to offer it. If there is none, the wanted message may not have
  /// been started, because its sender waits for messages that cannot leave. Those up to
  /// `most_copied_bytes` then end early.
  std::optional<offer> take_wanted(std::int64_t most_copied_bytes) {
    if (wants_.empty() || awaits_answer()) return std::nullopt;
    for (; looked_at_ < small_.size(); ++looked_at_) {
      const message& op = *small_[looked_at_];
      auto want = wants_.find({op.on(), op.tag()});
      if (want == wants_.end()) want = wants_.find({op.on(), any_tag});
      if (want == wants_.end()) continue;
      wants_.erase(want);
      position_ = looked_at_;
      ended_early_ = std::min(ended_early_, position_);
      const auto found = small_.begin() + std::ptrdiff_t(position_);
      const bool overtakes = std::any_of(
          small_.begin(), found, [&](const message_ptr& other) { return other->on() == op.on(); });
      offered_ = *found;
      small_.erase(found);
      return offer{offered_, next_sequence_++, overtakes};
    }
    for (; ended_early_ < small_.size(); ++ended_early_)
      if (message& op = *small_[ended_early_]; op.bytes() <= most_copied_bytes) op.end_early();
    return std::nullopt;
  }
  /// The offered message is accepted. (No effect for other messages.)
  void note_taken(const message& op) {
    if (offered_.get() == &op) offered_ = nullptr;
  }
  /// Puts the offered message back where it was. Returns false if the message was not offered.
  bool take_back(const message_ptr& op) {
    if (!op || offered_ != op) return false;
    small_.insert(small_.begin() + std::ptrdiff_t(position_), std::exchange(offered_, nullptr));
    looked_at_ = std::min(looked_at_, position_);
    ended_early_ = std::min(ended_early_, position_);
    return true;
  }

  /// Calls `visit` with every waiting message.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto* const some : {&small_, &large_})
      for (const message_ptr& op : *some) visit(*op);
  }

  /// Adds a large message that the peer has asked for.
  void add_granted(message_ptr op) {
    large_bytes_ += op->left_bytes();
    large_.push_back(std::move(op));
  }
  struct part {
    message_ptr whole;
    std::int64_t offset_bytes = 0, bytes = 0;
    std::vector<piece> payload{};
  };
  /// Takes a part of the first granted message of which the rail should carry anything.
  /// @param share share(large_view) returns the bytes for the rail, at most those left; 0: none
  template <class Share>
  std::optional<part> take_part(std::size_t rail, const Share& share) {
    for (auto found = large_.begin(); found != large_.end(); ++found) {
      message& op = **found;
      const std::int64_t bytes =
          share(large_view{op.bytes(), op.left_bytes(), op.carried_bytes(), large_bytes_});
      if (bytes <= 0) continue;
      part taken{.whole = *found, .offset_bytes = op.next(), .bytes = bytes};
      op.cut_next(rail, bytes, taken.payload);
      large_bytes_ -= bytes;
      if (op.left_bytes() == 0) large_.erase(found);
      return taken;
    }
    return std::nullopt;
  }

 private:
  std::vector<packet> control_;
  std::deque<message_ptr> small_;
  std::uint32_t next_sequence_ = 0;
  std::set<std::pair<channel, int>> wants_;
  std::size_t looked_at_ = 0, ended_early_ = 0;  // in small_, since the last new want
  message_ptr offered_;
  std::size_t position_ = 0;  // of the offered message
  std::deque<message_ptr> large_;
  std::int64_t large_bytes_ = 0;  // of large_, bytes without a rail
};

}  // namespace railpass::transport
