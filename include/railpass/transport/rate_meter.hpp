// SPDX-License-Identifier: BSL-1.0
//
// Measures how fast a peer's packets arrive over a rail, by the receiver's clock, and converts the
// result to the rail's rate at the sender. known_rail.hpp uses the rates.
#pragma once

#include "railpass/transport/packet_rail.hpp"
#include "railpass/transport/wire.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace railpass::transport {

/// Short packets count as bytes, but are too short to be timed.
inline bool can_be_timed(const packet& h) {
  constexpr std::uint64_t least_bytes = 4 << 10;
  return (h.type == packet_type::chunk || h.type == packet_type::eager ||
          h.type == packet_type::probe) &&
         h.length >= least_bytes;
}

/// Bytes of the packet, including its header.
inline std::int64_t bytes_on_rail(const packet& h) { return std::int64_t(h.length + header_bytes); }

/// The receiver's side of the rail from one peer. The end of a packet that followed another packet
/// without a pause is the whole packet's time after the end of that packet. Results are reported to
/// the sender once enough bytes, of any number of messages, outweigh the delays of polling.
class rate_meter {
 public:
  struct measured {
    double bytes_per_s = 0;
    bool of_probe = false;
  };

  /// Notes a packet; returns the result to report, if any.
  std::optional<measured> came(const packet& h, const arrival& timing) {
    bytes_since_ += bytes_on_rail(h);
    if (!can_be_timed(h)) return std::nullopt;
    const bool followed = measuring_ && h.rail_was_busy();
    const double took_s = timing.at_s - ended_s_;
    const std::int64_t bytes = std::exchange(bytes_since_, 0);
    ended_s_ = timing.at_s;
    if (!followed || h.type == packet_type::probe) {
      // A probe alone shows the current rate.
      std::optional<measured> result;
      if (followed && late_s_ + timing.late_s <= most_uncertainty * took_s)
        result = {double(bytes) / took_s, true};
      if (follows_) uncertain_s_ += late_s_;  // the last packet before the pause
      late_s_ = timing.late_s;
      measuring_ = true;
      follows_ = false;
      return result;
    }
    if (!follows_) uncertain_s_ += late_s_;  // the first packet after the pause
    late_s_ = timing.late_s;
    follows_ = true;
    measured_bytes_ += bytes;
    measured_s_ += took_s;
    if (measured_bytes_ < report_bytes ||
        uncertain_s_ + timing.late_s > most_uncertainty * measured_s_) {
      // Starts anew if even much more time would not outweigh the delay of the first look.
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

  // Packets that followed another packet without a pause, since the last report.
  bool measuring_ = false, follows_ = false;  // the last packet followed another one
  double ended_s_ = 0, late_s_ = 0;           // of the last packet
  std::int64_t bytes_since_ = 0;              // of the short packets since then
  std::int64_t measured_bytes_ = 0;
  double measured_s_ = 0, uncertain_s_ = 0;
};

/// The sender's side of the rail to one peer. The peer's meter sees only its part of the rail's
/// traffic, which goes to all peers.
class rate_share {
 public:
  /// Notes a packet for the rail. The time between the ends of two packets to one peer was spent on
  /// everything that left in between; for neighbouring packets nothing did, however much waits for
  /// other peers.
  /// @param given_bytes bytes given to the rail before
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

  /// Returns the rail's rate as a multiple of the rate that the peer reports now. Not for probes,
  /// which are sent alone.
  double take() {
    const double part = reported_bytes_ > 0 ? double(shared_bytes_) / double(reported_bytes_) : 1;
    reported_bytes_ = shared_bytes_ = 0;
    return part;
  }

 private:
  // Since the peer's last report: bytes to the peer, and all bytes that left meanwhile.
  std::int64_t reported_bytes_ = 0, shared_bytes_ = 0;
  std::int64_t unreported_bytes_ = 0;  // to the peer since the last packet that can be timed
  std::int64_t timed_at_bytes_ = 0;    // bytes given to the rail in total, up to that packet
};

}  // namespace railpass::transport
