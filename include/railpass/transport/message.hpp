// SPDX-License-Identifier: BSL-1.0
//
// A message in flight: the caller's view (operation) and the transport's state (message).
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
  /// May be called while another thread lets messages advance.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// For a finished receive: source, tag, and number of bytes in memory.
  int peer() const { return peer_; }
  int tag() const { return tag_; }
  std::int64_t bytes() const { return total_; }
  /// Whether the message was longer than its memory; the rest was dropped.
  bool truncated() const { return truncated_; }

 protected:
  operation(int peer, int tag) : peer_(peer), tag_(tag) {}
  ~operation() = default;

  int peer_, tag_;
  std::atomic<bool> done_ = false;
  bool truncated_ = false;
  std::int64_t total_ = 0;  // bytes to transfer
};

using operation_ptr = std::shared_ptr<operation>;

/// The transport's state of a message.
class message final : public operation {
 public:
  /// A message to send.
  message(int peer, int tag, channel on, std::vector<piece> from, std::shared_ptr<void> owner,
          bool may_end_early = true)
      : operation(peer, tag),
        channel_(on),
        pieces_(std::move(from)),
        owner_(std::move(owner)),
        may_end_early_(may_end_early) {
    capacity_ = total_ = bytes_of(pieces_);
  }
  /// A message to receive into these pieces.
  message(int source, int tag, channel on, std::vector<piece> to)
      : operation(source, tag), channel_(on), pieces_(std::move(to)) {
    capacity_ = bytes_of(pieces_);
  }
  /// A message to receive into the memory that `allocate` returns once the size is known.
  message(int source, int tag, channel on, std::function<piece(std::int64_t)> allocate)
      : operation(source, tag), channel_(on), allocate_(std::move(allocate)) {}
  /// A message to drop.
  message() : operation(any_source, any_tag) {}

  channel on() const { return channel_; }
  const std::vector<piece>& pieces() const { return pieces_; }
  std::int64_t capacity_bytes() const { return capacity_; }

  void finish() {
    owner_ = nullptr;  // breaks the cycle if the owner holds this operation
    allocate_ = nullptr;
    done_.store(true, std::memory_order_release);
  }

  // ---- receives ----

  /// Whether the receive matches such a message.
  bool fits(int source, const packet& h) const {
    return (peer_ == any_source || peer_ == source) && (tag_ == any_tag || tag_ == h.tag);
  }
  /// The receive matches a message of `bytes` bytes.
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
  /// Marks the part [begins, ends) as arriving. Returns false if the part is outside the message or
  /// overlaps an earlier part.
  bool take_part(std::int64_t begins, std::int64_t ends) {
    const auto after = parts_.lower_bound(begins);
    if (ends > total_ || (after != parts_.end() && after->first < ends) ||
        (after != parts_.begin() && std::prev(after)->second > begins))
      return false;
    parts_.emplace_hint(after, begins, ends);
    return true;
  }
  /// Counts arrived bytes. Returns whether all bytes have arrived; the parts are then forgotten.
  bool part_arrived(std::int64_t bytes) {
    arrived_ += bytes;
    if (arrived_ != total_) return false;
    parts_.clear();
    return true;
  }

  // ---- sends ----

  /// Ends the send for its caller by copying the bytes, although the message cannot leave yet. No
  /// effect if the message may not end early.
  void end_early() {
    if (done() || !may_end_early_) return;
    own_.resize(std::size_t(total_));
    std::vector<piece> copied{{own_.data(), own_.size()}};
    copy(pieces_, total_, copied);
    pieces_ = std::move(copied);
    finish();
  }
  /// The receiver has asked for `wanted_bytes` of the message under this number.
  void grant(std::uint32_t receiver_id, std::int64_t wanted_bytes, std::size_t num_rails) {
    total_ = wanted_bytes;
    receiver_id_ = receiver_id;
    carried_.assign(num_rails, 0);
  }
  std::uint32_t receiver_id() const { return receiver_id_; }
  /// No rail has bytes from here on.
  std::int64_t next() const { return next_; }
  std::int64_t left_bytes() const { return total_ - next_; }
  /// Bytes by rail, once granted.
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
  /// Counts the packets that need the memory. let_go() returns whether no packet does or will.
  void hold() { ++holders_; }
  bool let_go() { return --holders_ == 0 && left_bytes() == 0; }

 private:
  channel channel_ = 0;
  std::vector<piece> pieces_;
  std::shared_ptr<void> owner_;                  // of the pieces' memory
  std::function<piece(std::int64_t)> allocate_;  // for receives of unknown size
  std::int64_t capacity_ = 0;                    // bytes of the pieces
  // For sends.
  bool may_end_early_ = false;
  std::uint32_t receiver_id_ = 0;
  std::int64_t next_ = 0;
  std::vector<std::int64_t> carried_;
  std::vector<std::byte> own_;  // a copy of the bytes, if the send ended early
  int holders_ = 0;
  // For receives: the parts that have arrived or are arriving, as offsets begin -> end.
  std::map<std::int64_t, std::int64_t> parts_;
  std::int64_t arrived_ = 0;
};

using message_ptr = std::shared_ptr<message>;

}  // namespace railpass::transport
