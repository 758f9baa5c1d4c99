// SPDX-License-Identifier: BSL-1.0
//
// What an arm is worth beside native, from meetings: calls of both between the same two merges.
// Both saw the same machine then, so what they say holds whatever it did before and after. Each is
// a call whose call before ran the same arm, as a call holds what that one left to be done.
#pragma once

#include "railpass/base/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace railpass::select {

/// What an arm's meetings say of it.
struct pair_record {
  std::int64_t pairs = 0;
  std::int64_t wins = 0;
  double gain = 0;                    ///< ln(native's time / the arm's)
  std::optional<double> deviation{};  ///< of its error; one meeting alone says nothing of that
  friend bool operator==(const pair_record&, const pair_record&) = default;
};

/// The meetings of one arm.
class all_meetings {
 public:
  /// Both have some calls, the arm's and native's. Throws std::bad_alloc.
  void add(std::span<const double> own_s, std::span<const double> native_s) {
    if (meetings_.size() == most_meetings) {
      for (std::size_t i = 0; i < most_meetings / 2; ++i)
        meetings_[i] = joined(meetings_[2 * i], meetings_[2 * i + 1]);
      meetings_.resize(most_meetings / 2);
    }
    const std::size_t n = std::min(own_s.size(), native_s.size());
    const double own = mean_of(own_s), native = mean_of(native_s);
    // What counts are pairs, whatever calls took at that time: in native's time of late, or in the
    // middle of these calls where all has become slower or faster.
    native_s_[next_native_++ % native_s_.size()] = native;
    const double of_late_s =
        median(std::span(native_s_).first(std::min(next_native_, native_s_.size())));
    std::vector<double> all_s(own_s.begin(), own_s.end());
    all_s.insert(all_s.end(), native_s.begin(), native_s.end());
    const auto middle = all_s.begin() + std::ptrdiff_t((all_s.size() - 1) / 2);
    std::ranges::nth_element(all_s, middle);
    const bool has_changed = *middle > slow * of_late_s || slow * native < of_late_s;
    const double unit_s = has_changed ? *middle : of_late_s;
    meetings_.push_back({.pairs = double(n), .own = own / unit_s, .native = native / unit_s});
    pairs_ += std::int64_t(n);
    for (std::size_t i = 0; i < n; ++i) wins_ += own_s[i] < native_s[i] ? 1 : 0;
  }

  /// Nothing if there were none. A ratio of sums; how far the meetings are apart is its error, so
  /// that it is that of another while and not of other calls in the same one. A meeting with a call
  /// that the machine held up counts as `slow` times off the others; if that was clearly more often
  /// the arm's call than native's, its slow calls are its own and count as they are.
  std::optional<pair_record> record() const {
    if (meetings_.empty()) return std::nullopt;
    std::vector<double> ratios;
    for (const meeting& m : meetings_) ratios.push_back(m.native / m.own);
    const double middle = median(ratios);
    const auto own_slow =
        double(std::ranges::count_if(ratios, [&](double r) { return r < middle / slow; }));
    const auto native_slow =
        double(std::ranges::count_if(ratios, [&](double r) { return r > middle * slow; }));
    const bool has_slow_calls =
        own_slow - native_slow >= 2 * std::sqrt(own_slow + native_slow) && own_slow > 0;
    double own_sum = 0, native_sum = 0;
    const auto sums = [&](const meeting& m) {
      return meeting{
          .pairs = m.pairs,
          .own = m.pairs * (has_slow_calls ? m.own : std::min(m.own, slow * m.native / middle)),
          .native = m.pairs * std::min(m.native, slow * m.own * middle)};
    };
    for (const meeting& m : meetings_) {
      own_sum += sums(m).own;
      native_sum += sums(m).native;
    }
    const double ratio = native_sum / own_sum, n = double(meetings_.size());
    pair_record r{.pairs = pairs_, .wins = wins_, .gain = std::log(ratio)};
    if (meetings_.size() < 2) return r;
    double residuals = 0;
    for (const meeting& m : meetings_)
      residuals += std::pow(sums(m).native - ratio * sums(m).own, 2);
    r.deviation =
        few_meetings(meetings_.size() - 1) * std::sqrt(residuals * n / (n - 1)) / native_sum;
    return r;
  }

 private:
  static constexpr std::size_t most_meetings = 64;  // then every two count as one
  static constexpr double slow = 3;

  struct meeting {
    double pairs = 0, own = 0, native = 0;
  };

  static meeting joined(const meeting& a, const meeting& b) {
    const double all = a.pairs + b.pairs;
    return {.pairs = all,
            .own = (a.pairs * a.own + b.pairs * b.own) / all,
            .native = (a.pairs * a.native + b.pairs * b.native) / all};
  }
  static double mean_of(std::span<const double> times_s) {
    double sum = 0;
    for (const double t : times_s) sum += t;
    return sum / double(times_s.size());
  }
  /// Student's t for 95 %, in that of infinitely many.
  static double few_meetings(std::size_t degrees_of_freedom) {
    constexpr std::array of_few{12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31};
    return degrees_of_freedom <= of_few.size() ? of_few[degrees_of_freedom - 1] / 1.96
                                               : 1 + 1.3 / double(degrees_of_freedom);
  }

  std::vector<meeting> meetings_;
  std::array<double, 5> native_s_{};  // means of the last meetings, in a ring
  std::size_t next_native_ = 0;
  std::int64_t pairs_ = 0, wins_ = 0;
};

/// Of the same arm in two places: both count by their pairs, but one whose error nobody knows would
/// leave nothing of what the other says.
inline pair_record joined(const pair_record& a, const pair_record& b) {
  if (a.deviation.has_value() != b.deviation.has_value()) return a.deviation ? a : b;
  const double all = double(a.pairs + b.pairs), of_a = double(a.pairs) / all,
               of_b = double(b.pairs) / all;
  pair_record r{
      .pairs = a.pairs + b.pairs, .wins = a.wins + b.wins, .gain = of_a * a.gain + of_b * b.gain};
  if (a.deviation && b.deviation)
    r.deviation = std::hypot(of_a * *a.deviation, of_b * *b.deviation);
  return r;
}

}  // namespace railpass::select
