// SPDX-License-Identifier: BSL-1.0
//
// What is known of a rail to a peer while messages run: what was measured before, how quick it is
// now, whether that has to be found out, and what a person may want to know of it.
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

/// What a person may want to know of a rail to a peer.
struct rail_report {
  double bytes_per_s = 0;       ///< as estimated now
  int changes = 0;              ///< how often the estimate found that the rate had changed
  std::int64_t sent_bytes = 0;  ///< of messages
  /// |predicted - actual| / actual of the time that bytes took by the receiver's clock, median of
  /// the last 32 reports; nothing before the first one.
  std::optional<double> prediction_error{};
  double backlog_s = 0;  ///< mean time it was still busy whenever there was something to send
};

/// The same of all peers together: sums, and medians over the peers that it was used to.
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
  /// The first part of a probe is about what a token bucket lets pass at once, whatever its rate;
  /// the second one is timed.
  static constexpr std::int64_t first_probe_bytes = 16 << 10, probe_bytes = 48 << 10;

  /// `known`: the time was measured.
  known_rail(const transfer_time& time, bool known, std::int64_t eager_bytes)
      : sampled_(time), time_(time), rate_(time.bytes_per_s(), known) {
    thresholds_.eager_bytes = eager_bytes;
  }

  /// What was measured, for all that is decided from now on; what the report counts begins anew.
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

  /// Bytes of a part: about a millisecond, long enough to be worth a packet, short enough that what
  /// was decided wrong and the small messages behind it wait for little.
  /// Where a rail is not known yet, nothing is learnt from a message that is one part.
  std::int64_t quantum_bytes() const {
    constexpr std::int64_t least = 32 << 10, most = 1 << 20;
    if (!rate_.known()) return least;
    return std::clamp(std::int64_t(rate_.bytes_per_s() * 1e-3), least, most);
  }
  /// Given to a rail in advance, so that it never waits for us: two such parts, or what fills the
  /// way to the peer and back.
  std::int64_t window_bytes() const {
    return std::max(2 * quantum_bytes(), std::int64_t(4 * time_.latency_s() * rate_.bytes_per_s()));
  }

  // ---- its rate ----

  /// A packet goes to it, after so many bytes to all peers.
  void note_given(const packet& h, std::int64_t given_bytes) {
    share_.note_given(h, given_bytes);
    if (h.type != packet_type::probe) sent_bytes_ += std::int64_t(h.length);
  }
  /// The rate of what comes over it: most networks carry as much one way as the other.
  void suppose(double bytes_per_s) {
    rate_.suppose(bytes_per_s);
    time_ = sampled_.at_rate(rate_.bytes_per_s());
  }
  /// What the peer reports of what goes.
  void learn(double bytes_per_s, bool of_probe) {
    const double part = of_probe ? 1 : share_.take();
    errors_[num_reports_++ % errors_.size()] =
        std::abs(bytes_per_s * part / rate_.bytes_per_s() - 1);
    rate_.report(bytes_per_s * part);
    time_ = sampled_.at_rate(rate_.bytes_per_s());
    // What a rail in use carries says soon enough how quick it is.
    unmeasured_s_ =
        of_probe && rate_.may_be_quicker() ? std::numeric_limits<double>::infinity() : 0;
  }

  /// Another rail carried messages that can be timed to the peer for so long.
  void note_passed_over(double seconds) { unmeasured_s_ += seconds; }
  /// A rail thought slow is given no small messages, nor parts of others, so that nothing says when
  /// it has become quicker; and one that is quicker than thought is never busy at its next packet,
  /// which could be timed then. Bytes that nobody needs can, if others have carried messages for so
  /// long that these cost little; if they come quicker than expected, more follow at once.
  bool is_to_be_probed() const {
    return !spare_ && unmeasured_s_ > probe_every * double(first_probe_bytes + probe_bytes) /
                                          rate_.bytes_per_s();
  }
  void note_probed() { unmeasured_s_ = 0; }

  // ---- what is told of it ----

  /// It is busy for so long when there is something to send.
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
  static constexpr double probe_every = 32;  // times what it takes

  transfer_time sampled_, time_;
  rate_estimate rate_;
  rail_thresholds thresholds_;
  bool spare_ = false;
  rate_share share_;
  // That others carried messages to the peer since it was last known how quick this rail is.
  double unmeasured_s_ = 0;
  std::int64_t sent_bytes_ = 0;
  std::array<double, 32> errors_{};  // of predictions, in a ring
  std::size_t num_reports_ = 0;
  double backlog_s_ = 0;  // of all looks together
  std::int64_t looks_ = 0;
};

}  // namespace railpass::transport
