// SPDX-License-Identifier: BSL-1.0
//
// Flow control: limits the messages that a rank may send to another rank without being asked, which
// bounds the receiver's buffers. A message that the receiver asked for (want, in wire.hpp) needs no
// credit.
#pragma once

#include "railpass/transport/wire.hpp"

#include <cstdint>

namespace railpass::transport {

/// The credit between this rank and one peer, in both directions. At any time the given credit is
/// the sum of four parts: left at the sender, in flight, kept at the receiver, and on its way back.
class credit_account {
 public:
  /// The cost of a message besides its own bytes.
  static constexpr std::int64_t message_bytes = 256;

  /// Gives `given_bytes` of credit each way, at least enough for two small messages.
  /// @param small_bytes messages up to this size leave whole whenever any message may leave
  credit_account(std::int64_t given_bytes, std::int64_t small_bytes)
      : given_bytes_(given_bytes),
        least_bytes_(message_bytes + small_bytes),
        left_bytes_(given_bytes) {}

  /// The cost of a message or an announcement.
  static std::int64_t cost_of(const packet& h) { return message_bytes + std::int64_t(h.length); }

  // ---- outgoing ----

  /// Whether a message may leave: a small message, or the announcement of a large one.
  bool allows() const { return is_enough(left_bytes_); }
  /// Whether a message of `bytes` may leave whole, small or not.
  bool allows_whole(std::int64_t bytes) const { return message_bytes + bytes <= left_bytes_; }
  void spend(const packet& h) { left_bytes_ -= cost_of(h); }
  /// Takes credit back. Returns false if it is more than was spent.
  bool regain(std::int64_t bytes) {
    left_bytes_ += bytes;
    return left_bytes_ <= given_bytes_;
  }

  // ---- incoming ----

  /// Keeps a message or announcement. Returns false if the peer had no credit for it.
  bool keep(const packet& h) {
    kept_bytes_ += cost_of(h);
    return kept_bytes_ <= given_bytes_;
  }
  /// Frees a kept message; the credit goes back with the next packet to the peer. Returns whether
  /// the credit is so large that it must leave at once: a peer that can send nothing gets enough
  /// credit back once all its messages are received.
  bool owe(std::int64_t bytes) {
    owed_bytes_ += bytes;
    return owed_bytes_ >= given_bytes_ / 2;
  }
  /// Returns the credit that leaves now.
  std::uint32_t pay() {
    const std::int64_t owed_bytes = owed_bytes_;
    kept_bytes_ -= owed_bytes;
    owed_bytes_ = 0;
    return std::uint32_t(owed_bytes);
  }

  /// Whether the peer can send nothing more before it gets credit back. If a receive waits for a
  /// message behind the kept messages, this rank must ask for it; otherwise both ranks would wait
  /// forever.
  bool is_starved() const { return !is_enough(given_bytes_ - kept_bytes_); }

 private:
  // Both ends apply this rule to the same bytes when nothing is in flight. With less credit a rank
  // sends nothing unasked, not even the announcement of a small message. Otherwise the sender would
  // wait to be asked, while the receiver, which sees credit left, would not ask.
  bool is_enough(std::int64_t bytes) const { return bytes >= least_bytes_; }

  std::int64_t given_bytes_;
  std::int64_t least_bytes_;     // the least credit for sending anything unasked
  std::int64_t left_bytes_;      // credit for sending without being asked
  std::int64_t owed_bytes_ = 0;  // the peer's credit that it can have back
  std::int64_t kept_bytes_ = 0;  // the peer's credit that it has not got back
};

}  // namespace railpass::transport
