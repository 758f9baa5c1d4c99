// SPDX-License-Identifier: BSL-1.0
//
// The gain of an arm over native from paired comparisons: calls of both between the same two
// synchronisations. Both saw the same machine at that time, so later or earlier changes of the
// machine do not matter. Only calls that follow a call of the same arm count, because a call may
// hold leftover work of the call before.
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

/// The result of an arm's comparisons.
struct pair_record {
  std::int64_t pairs = 0;
  std::int64_t wins = 0;
  double gain = 0;  ///< ln(native's mean time / the arm's)
  std::optional<double>
      deviation{};  ///< of its error; empty with too few comparisons in the context
  friend bool operator==(const pair_record&, const pair_record&) = default;
};

/// The comparisons of one arm: its calls and native's that saw the same machine.
class all_meetings {
  struct squares_about_mean {  // relative to the mean
    double squares = 0, freedom = 0;
    double mean() const { return freedom > 0 ? squares / freedom : 0; }
    void add(const squares_about_mean& other) {
      squares += other.squares;
      freedom += other.freedom;
    }
  };
  struct block {
    double own_s = 0, native_s = 0;  // sums of means, weighted by the calls for which they count
    block& operator+=(const block& b) {
      own_s += b.own_s;
      native_s += b.native_s;
      return *this;
    }
  };

 public:
  /// The spread of a context's comparisons, as if all its arms gained the same. Arms that gain
  /// differently make it larger.
  class pooled_spread {
   public:
    void add(const all_meetings& arm) {
      if (arm.blocks_.empty()) return;
      within_.add(arm.within_);
      const double share = arm.sum().own_s / arm.sum().native_s,
                   meetings = double(arm.meetings_per_block_);
      for (const block& b : arm.blocks_) {
        of_arms_.squares += meetings * std::pow(b.own_s / b.native_s / share - 1, 2);
        meetings_ += meetings;
        shares_ += meetings * share;
        squared_shares_ += meetings * share * share;
      }
      of_arms_.freedom += double(arm.blocks_.size());
    }

   private:
    friend class all_meetings;
    squares_about_mean between() const {
      squares_about_mean all = of_arms_;
      all.squares += meetings_ * (meetings_ * squared_shares_ / (shares_ * shares_) - 1);
      all.freedom -= 1;
      return all;
    }
    squares_about_mean within_, of_arms_;
    double meetings_ = 0, shares_ = 0, squared_shares_ = 0;
  };

  /// Adds a comparison; both arms have some calls. It counts for the arm's calls since the last
  /// comparison.
  /// @param calls of the arm so far
  /// @throws std::bad_alloc
  void add(std::span<const double> own_s, std::span<const double> native_s, std::int64_t calls) {
    const double weight = double(std::max<std::int64_t>(1, calls - calls_));
    calls_ = calls;
    const std::size_t n = std::min(own_s.size(), native_s.size());
    pairs_ += std::int64_t(n);
    for (std::size_t i = 0; i < n; ++i) wins_ += own_s[i] < native_s[i] ? 1 : 0;
    if (newest_has_ == meetings_per_block_ || blocks_.empty()) {
      if (blocks_.size() == most_blocks) join_neighbours();
      blocks_.emplace_back();
      newest_has_ = 0;
    }
    const double native = weight * mean(native_s);
    blocks_.back() += {weight * mean(own_s), native};
    ++newest_has_;
    add_spread(own_s);
    add_spread(native_s);
    calls_say_ += native * native * (1 / double(own_s.size()) + 1 / double(native_s.size()));
  }

  /// The result; empty without comparisons. The gain is that of the means, slow calls included,
  /// because the program pays for the means: a ratio estimate (Cochran, Sampling Techniques, 1977,
  /// chapter 6). Neighbouring comparisons may be correlated, so the error is computed from blocks
  /// of them. The error is at least that of the spread within comparisons, because few calls of
  /// native may have included no slow call. The error of an arm with few comparisons is that of the
  /// spread over all arms of its context.
  /// @param of_context includes this arm
  std::optional<pair_record> record(const pooled_spread& of_context) const {
    if (blocks_.empty()) return std::nullopt;
    const block all = sum();
    const double ratio = all.native_s / all.own_s;
    pair_record r{.pairs = pairs_, .wins = wins_, .gain = std::log(ratio)};
    const squares_about_mean between = of_context.between();
    if (between.freedom < least_freedom) return r;
    double squares = 0, weights = 0;  // of the sum of the blocks
    for (const block& b : blocks_) {
      squares += std::pow(b.native_s - ratio * b.own_s, 2);
      weights += b.own_s * b.own_s;
    }
    // The number of blocks of equal weight that would be as informative, less 1.
    double freedom = all.own_s * all.own_s / weights - 1;
    squares_about_mean within = within_;
    if (freedom >= least_freedom) {
      squares *= (freedom + 1) / freedom;
    } else {
      freedom = between.freedom;
      within = of_context.within_;
      squares = 0;
      for (const block& b : blocks_) squares += b.native_s * b.native_s * between.mean();
    }
    r.deviation = students_t(freedom) / all.native_s *
                  std::sqrt(std::max(squares, within.mean() * calls_say_));
    return r;
  }

 private:
  static constexpr double least_freedom = 3;      // four comparisons of an arm
  static constexpr std::size_t most_blocks = 32;  // then pairs of blocks are joined

  block sum() const {
    block all;
    for (const block& b : blocks_) all += b;
    return all;
  }
  void add_spread(std::span<const double> times_s) {
    const double middle = mean(times_s);
    for (const double t : times_s) within_.squares += std::pow(t / middle - 1, 2);
    within_.freedom += double(times_s.size() - 1);
  }
  void join_neighbours() {
    for (std::size_t i = 0; i < most_blocks / 2; ++i) {
      const block first = blocks_[2 * i];
      (blocks_[i] = blocks_[2 * i + 1]) += first;
    }
    blocks_.resize(most_blocks / 2);
    meetings_per_block_ *= 2;
  }
  /// Student's t for 95 %, relative to that of infinitely many degrees of freedom.
  static double students_t(double freedom) {
    constexpr std::array few{12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31};
    const auto whole = std::size_t(freedom);
    return whole <= few.size() ? few[whole - 1] / 1.96 : 1 + 1.3 / freedom;
  }

  std::vector<block> blocks_;
  std::int64_t meetings_per_block_ = 1, newest_has_ = 0;
  std::int64_t calls_ = 0;     // at the last comparison
  squares_about_mean within_;  // of calls around their comparison's mean
  double calls_say_ = 0;       // the variance of the blocks' sum, for a spread of 1
  std::int64_t pairs_ = 0, wins_ = 0;
};

/// Combines two results for the same arm, weighted by their pairs. A result with an unknown error
/// is dropped if the other error is known.
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
