// SPDX-License-Identifier: BSL-1.0
//
// What waits to be sent to a peer until a rail takes it, or until there is credit for it or it is
// asked for.
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

  /// Control packets are few and small: they go at once.
  void add_control(const packet& p) { control_.push_back(p); }
  bool has_control() const { return !control_.empty(); }
  template <class Take>
  void take_control(const Take& take) {
    for (const packet& p : control_) take(p);
    control_.clear();
  }

  /// A message that was begun: it leaves as a packet of its own, or as its announcement.
  void add(message_ptr op) { small_.push_back(std::move(op)); }
  std::size_t num_small() const { return small_.size(); }
  const message& small(std::size_t i) const { return *small_[i]; }
  /// The first of them, and its number among all messages to the peer.
  std::pair<message_ptr, std::uint32_t> take_small() {
    message_ptr op = std::move(small_.front());
    small_.pop_front();
    return {std::move(op), next_sequence_++};
  }

  // ---- without credit ----

  /// Somebody at the peer waits for such a message.
  void note_want(channel on, int tag) {
    if (wants_.emplace(on, tag).second) looked_at_ = ended_early_ = 0;
  }
  /// There is credit again: messages leave in their order.
  void forget_wants() { wants_.clear(); }
  /// Nothing leaves in its order before an offer is answered: what was offered may come back.
  bool awaits_answer() const { return offered_ != nullptr; }
  struct offer {
    message_ptr op;
    std::uint32_t sequence = 0;
    bool overtakes = false;  // others of its channel
  };
  /// The first message that is wanted, which is to be offered. If there is none, the one that is
  /// wanted may not have been begun, because who begins them waits for those that cannot leave: of
  /// these all up to so many bytes end early.
  std::optional<offer> take_wanted(std::int64_t most_copied_bytes) {
    if (wants_.empty() || awaits_answer()) return std::nullopt;
    for (; looked_at_ < small_.size(); ++looked_at_) {
      const message& op = *small_[looked_at_];
      auto want = wants_.find({op.on(), op.tag()});
      if (want == wants_.end()) want = wants_.find({op.on(), any_tag});
      if (want == wants_.end()) continue;
      wants_.erase(want);
      place_ = looked_at_;
      ended_early_ = std::min(ended_early_, place_);
      const auto place = small_.begin() + std::ptrdiff_t(place_);
      const bool overtakes = std::any_of(
          small_.begin(), place, [&](const message_ptr& other) { return other->on() == op.on(); });
      offered_ = *place;
      small_.erase(place);
      return offer{offered_, next_sequence_++, overtakes};
    }
    for (; ended_early_ < small_.size(); ++ended_early_)
      if (message& op = *small_[ended_early_]; op.bytes() <= most_copied_bytes) op.end_early();
    return std::nullopt;
  }
  /// What was offered is taken. (Of another message nothing happens.)
  void note_taken(const message& op) {
    if (offered_.get() == &op) offered_ = nullptr;
  }
  /// What was offered comes back to its place. False if it was not.
  bool take_back(const message_ptr& op) {
    if (!op || offered_ != op) return false;
    small_.insert(small_.begin() + std::ptrdiff_t(place_), std::exchange(offered_, nullptr));
    looked_at_ = std::min(looked_at_, place_);
    ended_early_ = std::min(ended_early_, place_);
    return true;
  }

  /// Tells `visit` of every message that waits here.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto* const some : {&small_, &large_})
      for (const message_ptr& op : *some) visit(*op);
  }

  /// A large message that the peer has asked for.
  void add_granted(message_ptr op) {
    large_bytes_ += op->left_bytes();
    large_.push_back(std::move(op));
  }
  struct part {
    message_ptr whole;
    std::int64_t offset_bytes = 0, bytes = 0;
    std::vector<piece> payload{};
  };
  /// Some of the first message, in the order in which they were asked for, of which the rail shall
  /// carry something: `share(large_view)` says how many bytes, at most those left; 0: none.
  template <class Share>
  std::optional<part> take_part(std::size_t rail, const Share& share) {
    for (auto place = large_.begin(); place != large_.end(); ++place) {
      message& op = **place;
      const std::int64_t bytes =
          share(large_view{op.bytes(), op.left_bytes(), op.carried_bytes(), large_bytes_});
      if (bytes <= 0) continue;
      part taken{.whole = *place, .offset_bytes = op.next(), .bytes = bytes};
      op.cut_next(rail, bytes, taken.payload);
      large_bytes_ -= bytes;
      if (op.left_bytes() == 0) large_.erase(place);
      return taken;
    }
    return std::nullopt;
  }

 private:
  std::vector<packet> control_;
  std::deque<message_ptr> small_;
  std::uint32_t next_sequence_ = 0;
  std::set<std::pair<channel, int>> wants_;
  std::size_t looked_at_ = 0, ended_early_ = 0;  // of small_, since the last new want
  message_ptr offered_;
  std::size_t place_ = 0;  // of what is offered
  std::deque<message_ptr> large_;
  std::int64_t large_bytes_ = 0;  // of these, carried by nobody yet
};

}  // namespace railpass::transport
