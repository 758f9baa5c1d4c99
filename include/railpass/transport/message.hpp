// SPDX-License-Identifier: BSL-1.0
//
// A message on its way: what who sends or receives it may ask, and how far the transport is with
// it.
#pragma once

#include "railpass/transport/pieces.hpp"
#include "railpass/transport/wire.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace railpass::transport {

inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;

/// A message that is being sent or received.
class operation {
 public:
  /// May be asked while another thread lets messages advance.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Of a receive that is done: who sent it, its tag, and its bytes that are in memory.
  int peer() const { return peer_; }
  int tag() const { return tag_; }
  std::int64_t bytes() const { return total_; }
  /// The message was longer than the memory for it; the rest was dropped.
  bool truncated() const { return truncated_; }

 protected:
  operation(int peer, int tag) : peer_(peer), tag_(tag) {}
  ~operation() = default;

  int peer_, tag_;
  std::atomic<bool> done_ = false;
  bool truncated_ = false;
  std::int64_t total_ = 0;  // bytes that travel
};

using operation_ptr = std::shared_ptr<operation>;

/// What the transport keeps of it.
class message final : public operation {
 public:
  /// To be sent.
  message(int peer, int tag, channel on, std::vector<piece> from, std::shared_ptr<void> owner)
      : operation(peer, tag), channel_(on), pieces_(std::move(from)), owner_(std::move(owner)) {
    capacity_ = total_ = bytes_of(pieces_);
  }
  /// To be received into these pieces.
  message(int source, int tag, channel on, std::vector<piece> to)
      : operation(source, tag), channel_(on), pieces_(std::move(to)) {
    capacity_ = bytes_of(pieces_);
  }
  /// To be received into what `allocate` returns once the size is known.
  message(int source, int tag, channel on, std::function<piece(std::int64_t)> allocate)
      : operation(source, tag), channel_(on), allocate_(std::move(allocate)) {}
  /// To be received by nobody.
  message() : operation(any_source, any_tag) {}

  channel on() const { return channel_; }
  const std::vector<piece>& pieces() const { return pieces_; }
  std::int64_t capacity_bytes() const { return capacity_; }

  void finish() {
    owner_ = nullptr;  // which may hold whoever holds the operation
    allocate_ = nullptr;
    done_.store(true, std::memory_order_release);
  }

  // ---- of a receive ----

  /// Whether it takes such a message.
  bool fits(int source, const packet& h) const {
    return (peer_ == any_source || peer_ == source) && (tag_ == any_tag || tag_ == h.tag);
  }
  /// It gets a message of so many bytes.
  void start(int source, int tag, std::int64_t bytes) {
    peer_ = source;
    tag_ = tag;
    if (allocate_) {
      pieces_ = {allocate_(bytes)};
      capacity_ = bytes_of(pieces_);
    }
    truncated_ = bytes > capacity_;
    total_ = std::min(bytes, capacity_);
  }
  /// The part [begins, ends) is arriving; false if it is outside of the message, or some of it came
  /// before.
  bool take_part(std::int64_t begins, std::int64_t ends) {
    const auto after = parts_.lower_bound(begins);
    if (ends > total_ || (after != parts_.end() && after->first < ends) ||
        (after != parts_.begin() && std::prev(after)->second > begins))
      return false;
    parts_.emplace_hint(after, begins, ends);
    return true;
  }
  /// So many bytes of parts have arrived. Whether all have; then nothing is known of parts any
  /// more.
  bool part_arrived(std::int64_t bytes) {
    arrived_ += bytes;
    if (arrived_ != total_) return false;
    parts_.clear();
    return true;
  }

  // ---- of a send ----

  /// It cannot leave yet, and has ended for who sends it all the same: its bytes are copied.
  void end_early() {
    if (done()) return;
    own_.resize(std::size_t(total_));
    std::vector<piece> copied{{own_.data(), own_.size()}};
    copy(pieces_, total_, copied);
    pieces_ = std::move(copied);
    finish();
  }
  /// The receiver has asked for so many bytes of it, by this number.
  void grant(std::uint32_t receiver_id, std::int64_t wanted_bytes, std::size_t num_rails) {
    total_ = wanted_bytes;
    receiver_id_ = receiver_id;
    carried_.assign(num_rails, 0);
  }
  std::uint32_t receiver_id() const { return receiver_id_; }
  /// Bytes from here on have been given to no rail yet.
  std::int64_t next() const { return next_; }
  std::int64_t left_bytes() const { return total_ - next_; }
  /// By each rail, once it is granted.
  std::span<const std::int64_t> carried_bytes() const { return carried_; }
  /// Cuts off the next bytes, for a rail.
  void cut_next(std::size_t rail, std::int64_t bytes, std::vector<piece>& part) {
    cut(pieces_, next_, bytes, part);
    next_ += bytes;
    carried_[rail] += bytes;
  }
  void cut_all(std::vector<piece>& whole) {
    whole = pieces_;
    next_ = total_;
  }
  /// A packet more, or one less, needs the memory. Whether none does nor will.
  void hold() { ++holders_; }
  bool let_go() { return --holders_ == 0 && left_bytes() == 0; }

 private:
  channel channel_ = 0;
  std::vector<piece> pieces_;
  std::shared_ptr<void> owner_;                  // of their memory
  std::function<piece(std::int64_t)> allocate_;  // for receives of unknown size
  std::int64_t capacity_ = 0;                    // bytes of the pieces
  // Of a send.
  std::uint32_t receiver_id_ = 0;
  std::int64_t next_ = 0;
  std::vector<std::int64_t> carried_;
  std::vector<std::byte> own_;  // its bytes, once it has ended early
  int holders_ = 0;
  // Of a receive: the parts that have arrived or are arriving, as offsets begin -> end.
  std::map<std::int64_t, std::int64_t> parts_;
  std::int64_t arrived_ = 0;
};

using message_ptr = std::shared_ptr<message>;

}  // namespace railpass::transport
