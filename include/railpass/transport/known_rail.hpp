// SPDX-License-Identifier: BSL-1.0
//
// The state of a rail to a peer: its measured times, its current rate, whether to probe it, and the
// report for users. rate_meter.hpp measures the rate.
#pragma once

#include "railpass/base/statistics.hpp"
#include "railpass/transport/link_profile.hpp"
#include "railpass/transport/rate.hpp"
#include "railpass/transport/rate_meter.hpp"
#include "railpass/transport/wire.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace railpass::transport {

/// A report for users on a rail to a peer.
struct rail_report {
  double bytes_per_s = 0;       ///< current estimate
  int changes = 0;              ///< how often the estimated rate changed
  std::int64_t sent_bytes = 0;  ///< of messages
  /// Median of |predicted - actual| / actual over the last 32 reports, for the time of bytes by the
  /// receiver's clock; empty before the first report.
  std::optional<double> prediction_error{};
  double backlog_s = 0;  ///< mean time for which the rail was still busy when more data came
};

/// The report of all peers together: sums, and medians over the peers that used the rail.
inline rail_report together(std::span<const rail_report> peers) {
  rail_report result;
  std::vector<double> rates, errors, backlogs_s;
  for (const rail_report& r : peers) {
    result.sent_bytes += r.sent_bytes;
    result.changes += r.changes;
    if (r.prediction_error) errors.push_back(*r.prediction_error);
    if (r.sent_bytes == 0) continue;
    rates.push_back(r.bytes_per_s);
    backlogs_s.push_back(r.backlog_s);
  }
  if (!rates.empty()) result.bytes_per_s = median(rates);
  if (!errors.empty()) result.prediction_error = median(errors);
  if (!backlogs_s.empty()) result.backlog_s = median(backlogs_s);
  return result;
}

class known_rail {
 public:
  /// The first part of a probe fills what a token bucket passes at once, whatever its rate; the
  /// second part is timed.
  static constexpr std::int64_t first_probe_bytes = 16 << 10, probe_bytes = 48 << 10;

  /// @param known whether `time` was measured
  known_rail(const transfer_time& time, bool known, std::int64_t eager_bytes)
      : sampled_(time), time_(time), rate_(time.bytes_per_s(), known) {
    thresholds_.eager_bytes = eager_bytes;
  }

  /// Sets measured times for later decisions; the report restarts.
  void know(const rail_profile& measured, std::int64_t most_eager) {
    sampled_ = time_ = measured.time;
    rate_ = rate_estimate(time_.bytes_per_s(), true);
    thresholds_ = measured.thresholds;
    thresholds_.eager_bytes = std::clamp<std::int64_t>(thresholds_.eager_bytes, 0, most_eager);
    spare_ = measured.spare;
    sent_bytes_ = 0;
    num_reports_ = 0;
    backlog_s_ = 0;
    looks_ = 0;
  }

  const transfer_time& time() const { return time_; }
  double bytes_per_s() const { return rate_.bytes_per_s(); }
  const rail_thresholds& thresholds() const { return thresholds_; }
  bool spare() const { return spare_; }

  /// Bytes of a part: about a millisecond. A part is large enough to be worth a packet, and small
  /// enough that wrong decisions and small messages behind it cost little. On a rail of unknown
  /// rate parts are smallest, because a message of one part teaches nothing.
  std::int64_t quantum_bytes() const {
    constexpr std::int64_t least = 32 << 10, most = 1 << 20;
    if (!rate_.known()) return least;
    return std::clamp(std::int64_t(rate_.bytes_per_s() * 1e-3), least, most);
  }
  /// Bytes to give a rail in advance, so that the rail never waits for the transport: two parts, or
  /// the round trip times the rate.
  std::int64_t window_bytes() const {
    return std::max(2 * quantum_bytes(), std::int64_t(4 * time_.latency_s() * rate_.bytes_per_s()));
  }

  // ---- the rate ----

  /// Notes a packet for this rail.
  /// @param given_bytes bytes given to the rail before, to all peers
  void note_given(const packet& h, std::int64_t given_bytes) {
    share_.note_given(h, given_bytes);
    if (h.type != packet_type::probe) sent_bytes_ += std::int64_t(h.length);
  }
  /// Notes the rate of incoming packets: most networks are as fast in both directions.
  void suppose(double bytes_per_s) {
    rate_.suppose(bytes_per_s);
    time_ = sampled_.at_rate(rate_.bytes_per_s());
  }
  /// Notes the peer's report on outgoing packets.
  void learn(double bytes_per_s, bool of_probe) {
    const double part = of_probe ? 1 : share_.take();
    errors_[num_reports_++ % errors_.size()] =
        std::abs(bytes_per_s * part / rate_.bytes_per_s() - 1);
    rate_.report(bytes_per_s * part);
    time_ = sampled_.at_rate(rate_.bytes_per_s());
    // A rail in use soon shows its rate by itself.
    unmeasured_s_ =
        of_probe && rate_.may_be_quicker() ? std::numeric_limits<double>::infinity() : 0;
  }

  /// Notes that other rails carried timed messages to the peer for `seconds`.
  void note_passed_over(double seconds) { unmeasured_s_ += seconds; }
  /// Whether to probe the rail. A rail of low estimated rate gets no messages, so nothing shows
  /// that it has become faster; a rail faster than estimated is never busy at its next packet,
  /// which could otherwise be timed. Probes are sent when other rails have carried messages for so
  /// long that the probe's cost is small. If a probe is faster than expected, another follows at
  /// once.
  bool is_to_be_probed() const {
    return !spare_ && unmeasured_s_ > probe_every * double(first_probe_bytes + probe_bytes) /
                                          rate_.bytes_per_s();
  }
  void note_probed() { unmeasured_s_ = 0; }

  // ---- the report ----

  /// Notes that the rail is busy for `seconds` when there is something to send.
  void note_backlog(double seconds) {
    backlog_s_ += seconds;
    ++looks_;
  }
  rail_report report() const {
    rail_report result{rate_.bytes_per_s(), rate_.changes(), sent_bytes_};
    if (num_reports_ > 0)
      result.prediction_error = median({errors_.data(), std::min(num_reports_, errors_.size())});
    if (looks_ > 0) result.backlog_s = backlog_s_ / double(looks_);
    return result;
  }

 private:
  static constexpr double probe_every = 32;  // times the duration of a probe

  transfer_time sampled_, time_;
  rate_estimate rate_;
  rail_thresholds thresholds_;
  bool spare_ = false;
  rate_share share_;
  // Time for which other rails carried messages to the peer since this rail was last measured.
  double unmeasured_s_ = 0;
  std::int64_t sent_bytes_ = 0;
  std::array<double, 32> errors_{};  // of predictions, in a ring
  std::size_t num_reports_ = 0;
  double backlog_s_ = 0;  // sum over all looks
  std::int64_t looks_ = 0;
};

}  // namespace railpass::transport
