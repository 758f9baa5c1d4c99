// SPDX-License-Identifier: BSL-1.0
//
// How quick a rail is now, from what receivers report.
#pragma once

#include <algorithm>
#include <cmath>

namespace railpass::transport {

/// A moving average of log(rate). A change of the rate is noticed by two-sided cumulated sums of
/// what the average did not expect (Page, Continuous inspection schemes, Biometrika 1954, doi
/// 10.1093/biomet/41.1-2.100), and then the average begins anew from the last reports.
class rate_estimate {
 public:
  /// `known`: from measurements; else the first report replaces it.
  explicit rate_estimate(double bytes_per_s, bool known)
      : log_rate_(std::log(bytes_per_s)), reports_(known ? settled : 0) {}

  void report(double bytes_per_s) {
    const double now = std::log(bytes_per_s);
    if (reports_ == 0) {
      log_rate_ = now;
      reports_ = 1;
      return;
    }
    const double surprise = now - log_rate_;
    above_ = std::max(0.0, above_ + surprise - slack);
    below_ = std::max(0.0, below_ - surprise - slack);
    if (above_ > limit || below_ > limit) {
      if (std::abs(surprise) < agreement) {
        above_ = below_ = 0;  // it was one wrong report
        suspected_ = nobody;
      } else if (std::abs(now - suspected_) < agreement) {
        log_rate_ = now;
        reports_ = 1;
        above_ = below_ = 0;
        suspected_ = nobody;
        ++changes_;
        return;
      } else {
        suspected_ = now;
        return;
      }
    }
    reports_ = std::min(reports_ + 1, settled);
    log_rate_ += surprise / reports_;
  }

  double bytes_per_s() const { return std::exp(log_rate_); }
  int changes() const { return changes_; }

 private:
  static constexpr int settled = 8;  // reports the average goes back
  static constexpr double slack = 0.15;
  static constexpr double agreement = 0.3;  // of two reports
  static constexpr double limit = 0.5;
  static constexpr double nobody = 1e300;
  double log_rate_;
  int reports_;
  double above_ = 0, below_ = 0;
  double suspected_ = nobody;
  int changes_ = 0;
};

}  // namespace railpass::transport
