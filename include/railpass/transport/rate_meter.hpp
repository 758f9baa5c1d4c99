// SPDX-License-Identifier: BSL-1.0
//
// How quick the packets of a peer come over a rail, by the receiver's clock, and what the sender
// has to know to make the rail's rate of it.
#pragma once

#include "railpass/transport/packet_rail.hpp"
#include "railpass/transport/wire.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace railpass::transport {

/// Short packets count, but their times tell nothing.
inline bool can_be_timed(const packet& h) {
  constexpr std::uint64_t least_bytes = 4 << 10;
  return (h.type == packet_type::chunk || h.type == packet_type::eager ||
          h.type == packet_type::probe) &&
         h.length >= least_bytes;
}

/// With its header.
inline std::int64_t bytes_on_rail(const packet& h) { return std::int64_t(h.length + header_bytes); }

/// The receiver's side, of the rail from one peer. The end of a packet that followed another one
/// without a pause is a whole packet's time after the end of that one; short ones count, but tell
/// nothing. Reported to the sender once enough bytes make up for not looking all the time, be they
/// of several messages.
class rate_meter {
 public:
  struct measured {
    double bytes_per_s = 0;
    bool of_probe = false;
  };

  /// A packet has come; what there is to report because of it.
  std::optional<measured> came(const packet& h, const arrival& timing) {
    bytes_since_ += bytes_on_rail(h);
    if (!can_be_timed(h)) return std::nullopt;
    const bool followed = measuring_ && h.rail_was_busy();
    const double took_s = timing.at_s - ended_s_;
    const std::int64_t bytes = std::exchange(bytes_since_, 0);
    ended_s_ = timing.at_s;
    if (!followed || h.type == packet_type::probe) {
      // A probe says by itself how quick the rail is now.
      std::optional<measured> result;
      if (followed && late_s_ + timing.late_s <= most_uncertainty * took_s)
        result = {double(bytes) / took_s, true};
      if (follows_) uncertain_s_ += late_s_;  // the last one before the pause
      late_s_ = timing.late_s;
      measuring_ = true;
      follows_ = false;
      return result;
    }
    if (!follows_) uncertain_s_ += late_s_;  // the first one after it
    late_s_ = timing.late_s;
    follows_ = true;
    measured_bytes_ += bytes;
    measured_s_ += took_s;
    if (measured_bytes_ < report_bytes ||
        uncertain_s_ + timing.late_s > most_uncertainty * measured_s_) {
      // Begin anew where even much more time would not make up for how late the first look was.
      if (measured_bytes_ > 16 * report_bytes) {
        measuring_ = follows_ = false;
        measured_bytes_ = 0;
        measured_s_ = uncertain_s_ = 0;
      }
      return std::nullopt;
    }
    const measured result{double(measured_bytes_) / measured_s_, false};
    measured_bytes_ = 0;
    measured_s_ = 0;
    uncertain_s_ = timing.late_s;
    return result;
  }

 private:
  static constexpr std::int64_t report_bytes = 128 << 10;
  static constexpr double most_uncertainty = 0.1;

  // Packets that followed another one without a pause, since the last report.
  bool measuring_ = false, follows_ = false;  // the last packet followed another one
  double ended_s_ = 0, late_s_ = 0;           // of the last packet
  std::int64_t bytes_since_ = 0;              // of the short ones since then
  std::int64_t measured_bytes_ = 0;
  double measured_s_ = 0, uncertain_s_ = 0;
};

/// The sender's side, of the rail to one peer: what the peer's meter sees is its part of what the
/// rail carries for all of them.
class rate_share {
 public:
  /// A packet goes to a rail that had been given so many bytes before. What left between two
  /// packets to a peer is what the time between their ends was for: nothing else if they are
  /// neighbours, however much waits for other peers.
  void note_given(const packet& h, std::int64_t given_bytes) {
    unreported_bytes_ += bytes_on_rail(h);
    if (!can_be_timed(h)) return;
    const std::int64_t now_bytes = given_bytes + bytes_on_rail(h);
    if (h.rail_was_busy() && h.type != packet_type::probe) {
      reported_bytes_ += unreported_bytes_;
      shared_bytes_ += now_bytes - timed_at_bytes_;
    }
    unreported_bytes_ = 0;
    timed_at_bytes_ = now_bytes;
  }

  /// The rail's rate is so many times what the peer reports now. Not of a probe, which is sent
  /// alone.
  double take() {
    const double part = reported_bytes_ > 0 ? double(shared_bytes_) / double(reported_bytes_) : 1;
    reported_bytes_ = shared_bytes_ = 0;
    return part;
  }

 private:
  // Since the peer's last report: bytes to it, and all bytes that left meanwhile, to whichever
  // peer.
  std::int64_t reported_bytes_ = 0, shared_bytes_ = 0;
  std::int64_t unreported_bytes_ = 0;  // to it since the last packet that can be timed
  std::int64_t timed_at_bytes_ = 0;    // of all that the rail was given, with that packet
};

}  // namespace railpass::transport
