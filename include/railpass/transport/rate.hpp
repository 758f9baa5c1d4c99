// SPDX-License-Identifier: BSL-1.0
//
// How quick a rail is now, from what receivers report.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace railpass::transport {

/// A moving average of log(rate) that no single report can pull far. When the median of the last
/// reports is not what the average expects, the rate has changed and the average begins anew from
/// there: on a machine whose cores are busy, a process that was not given one makes up to three
/// reports in a row wrong, which change neither.
class rate_estimate {
 public:
  /// `known`: from measurements; else the first reports replace it.
  explicit rate_estimate(double bytes_per_s, bool known)
      : log_rate_(std::log(bytes_per_s)), weight_(known ? settled : 0) {}

  /// A better guess while there is neither a measurement nor a report.
  void suppose(double bytes_per_s) {
    if (weight_ == 0) log_rate_ = std::log(bytes_per_s);
  }

  /// Whether there was a measurement or a report.
  bool known() const { return weight_ > 0; }

  void report(double bytes_per_s) {
    const double now = std::log(bytes_per_s);
    last_[next_] = now;
    next_ = (next_ + 1) % last_.size();
    reports_ = std::min(reports_ + 1, last_.size());
    quicker_ = false;
    if (weight_ < enough) {
      ++weight_;
      log_rate_ = median();
    } else if (int(reports_) >= enough && std::abs(median() - log_rate_) > changed) {
      weight_ = enough;
      log_rate_ = median();
      ++changes_;
    } else {
      weight_ = std::min(weight_ + 1, settled);
      quicker_ = now - log_rate_ > changed;
      log_rate_ += std::clamp(now - log_rate_, -changed, changed) / weight_;
    }
  }

  double bytes_per_s() const { return std::exp(log_rate_); }
  /// Whether the last report was of a rate that others would have to confirm.
  bool may_be_quicker() const { return quicker_; }
  int changes() const { return changes_; }

 private:
  static constexpr int settled = 8;        // reports the average goes back
  static constexpr int enough = 4;         // to believe their median: most of the last seven
  static constexpr double changed = 0.35;  // of log(rate): a third

  double median() const {
    std::array<double, 7> sorted = last_;
    const auto middle = sorted.begin() + std::ptrdiff_t(reports_ / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + std::ptrdiff_t(reports_));
    return *middle;
  }

  double log_rate_;
  int weight_;
  std::array<double, 7> last_{};
  std::size_t next_ = 0, reports_ = 0;
  int changes_ = 0;
  bool quicker_ = false;
};

}  // namespace railpass::transport
