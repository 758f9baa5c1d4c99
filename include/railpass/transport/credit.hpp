// SPDX-License-Identifier: BSL-1.0
//
// What a rank may send to another one without being asked, so that what the other has to keep of it
// is bounded. What was asked for (a want, in wire.hpp) takes none.
#pragma once

#include "railpass/transport/wire.hpp"

#include <cstdint>

namespace railpass::transport {

/// Between this rank and one peer, both ways. At any time what may be sent, what is under way, what
/// the receiver counts as kept and what comes back to the sender are together what was given.
class credit_account {
 public:
  /// What a message is counted with beside its own bytes.
  static constexpr std::int64_t message_bytes = 256;

  /// Each way, `given_bytes` of messages. Messages of up to `small_bytes` are to leave whole,
  /// whatever is left; there is credit for at least two of them.
  credit_account(std::int64_t given_bytes, std::int64_t small_bytes)
      : given_bytes_(given_bytes),
        least_bytes_(message_bytes + small_bytes),
        left_bytes_(given_bytes) {}

  /// Of a message or an announcement.
  static std::int64_t cost_of(const packet& h) { return message_bytes + std::int64_t(h.length); }

  // ---- what goes ----

  /// Whether a message can leave: any small one, or the announcement of any other.
  bool allows() const { return is_enough(left_bytes_); }
  /// Whether one of so many bytes, small or not, can leave whole.
  bool allows_whole(std::int64_t bytes) const { return message_bytes + bytes <= left_bytes_; }
  void spend(const packet& h) { left_bytes_ -= cost_of(h); }
  /// Comes back. False if it is more than was spent.
  bool regain(std::int64_t bytes) {
    left_bytes_ += bytes;
    return left_bytes_ <= given_bytes_;
  }

  // ---- what comes ----

  /// A message or an announcement has come. False if the peer had no credit for it.
  bool keep(const packet& h) {
    kept_bytes_ += cost_of(h);
    return kept_bytes_ <= given_bytes_;
  }
  /// It is kept no longer: the peer may send so many bytes again, which leave with whatever goes to
  /// it. Whether they are so many that they should leave by themselves: a peer that can send
  /// nothing gets enough back once all is received.
  bool owe(std::int64_t bytes) {
    owed_bytes_ += bytes;
    return owed_bytes_ >= given_bytes_ / 2;
  }
  /// What leaves now.
  std::uint32_t pay() {
    const std::int64_t owed_bytes = owed_bytes_;
    kept_bytes_ -= owed_bytes;
    owed_bytes_ = 0;
    return std::uint32_t(owed_bytes);
  }

  /// The peer can send nothing more before it gets some back. If somebody waits for another message
  /// of it, which may be behind those that are kept, it must be asked: else both would wait for
  /// ever.
  bool is_starved() const { return !is_enough(given_bytes_ - kept_bytes_); }

 private:
  // The one rule of both ends: with nothing under way they look at the same bytes. With less than
  // this a rank sends nothing unasked, not even the announcement of a small message: its sender
  // would wait until it is asked for, and the receiver, which knows of credit left, would not ask.
  bool is_enough(std::int64_t bytes) const { return bytes >= least_bytes_; }

  std::int64_t given_bytes_;
  std::int64_t least_bytes_;     // that a rank must have left to send anything unasked
  std::int64_t left_bytes_;      // that may still be sent without asking
  std::int64_t owed_bytes_ = 0;  // of the peer's credit that it can have back
  std::int64_t kept_bytes_ = 0;  // of the peer's credit that it has not got back
};

}  // namespace railpass::transport
