// SPDX-License-Identifier: BSL-1.0
//
// What waits to be sent to a peer until a rail takes it.
#pragma once

#include "railpass/transport/message.hpp"
#include "railpass/transport/packet_rail.hpp"
#include "railpass/transport/strategy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
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
  std::deque<message_ptr> large_;
  std::int64_t large_bytes_ = 0;  // of these, carried by nobody yet
};

}  // namespace railpass::transport
