// SPDX-License-Identifier: BSL-1.0
//
// Detects failed rails: a rail to a peer has failed if the peer's host acknowledges nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace railpass::transport {

/// Silence counts only between consecutive looks. Packets that were in flight when this rank
/// started to compute give no information about the time since.
class silence_watch {
 public:
  /// @param silence_s in seconds; 0: never look
  /// @param rails number of rails to all peers together
  silence_watch(double silence_s, std::size_t rails)
      : silence_s_(silence_s),
        look_every_s_(silence_s > 0 ? std::min(0.5, silence_s / 8)
                                    : std::numeric_limits<double>::infinity()),
        since_s_(rails, 0) {}

  bool is_time(double now_s) const { return now_s >= looked_s_ + look_every_s_; }
  /// Looks at all rails; the following calls refer to this look. Returns whether the last look was
  /// recent enough: otherwise nothing is known about the time since.
  bool look(double now_s) {
    const bool again = now_s <= looked_s_ + 2 * look_every_s_;
    looked_s_ = now_s;
    if (!again) std::fill(since_s_.begin(), since_s_.end(), now_s);
    return again;
  }
  /// Restarts the clock of a rail whose peer no operation waits for.
  void excuse(std::size_t rail) { since_s_[rail] = looked_s_; }
  /// Returns whether the rail has been silent for too long.
  /// @param unanswered_s time for which the last packet has not been acknowledged; 0: it has been
  bool is_lost(std::size_t rail, double unanswered_s) {
    if (unanswered_s > 0)
      since_s_[rail] = std::max(since_s_[rail], looked_s_ - unanswered_s);
    else
      since_s_[rail] = looked_s_;
    // The limit allows for two and a half intervals between looks, so that failure is noticed in
    // time.
    return looked_s_ - since_s_[rail] > silence_s_ - 2.5 * look_every_s_;
  }

 private:
  double silence_s_, look_every_s_;
  double looked_s_ = -std::numeric_limits<double>::infinity();
  std::vector<double> since_s_;  // by rail
};

}  // namespace railpass::transport
