// SPDX-License-Identifier: BSL-1.0
//
// When a rail to a peer whose host acknowledges nothing has failed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace railpass::transport {

/// Silence counts only from one look to the next one: what was under way when this rank went off to
/// compute tells nothing of the time since.
class silence_watch {
 public:
  /// Of so many rails to all peers together. `silence_s` 0: it is never time to look.
  silence_watch(double silence_s, std::size_t rails)
      : silence_s_(silence_s),
        look_every_s_(silence_s > 0 ? std::min(0.5, silence_s / 8)
                                    : std::numeric_limits<double>::infinity()),
        since_s_(rails, 0) {}

  bool is_time(double now_s) const { return now_s >= looked_s_ + look_every_s_; }
  /// Looks at all rails, of which the following calls tell. Whether the last look was the one
  /// before: else nothing is known of the time since.
  bool look(double now_s) {
    const bool again = now_s <= looked_s_ + 2 * look_every_s_;
    looked_s_ = now_s;
    if (!again) std::fill(since_s_.begin(), since_s_.end(), now_s);
    return again;
  }
  /// Nobody waits for anything of the peer.
  void excuse(std::size_t rail) { since_s_[rail] = looked_s_; }
  /// For so long what was sent last has not been acknowledged; 0: it has. Whether that is too long.
  bool is_lost(std::size_t rail, double unanswered_s) {
    if (unanswered_s > 0)
      since_s_[rail] = std::max(since_s_[rail], looked_s_ - unanswered_s);
    else
      since_s_[rail] = looked_s_;
    // Noticed by the last look before the time is over, counted from an unfortunate moment.
    return looked_s_ - since_s_[rail] > silence_s_ - 2.5 * look_every_s_;
  }

 private:
  double silence_s_, look_every_s_;
  double looked_s_ = -std::numeric_limits<double>::infinity();
  std::vector<double> since_s_;  // by rail
};

}  // namespace railpass::transport
