// SPDX-License-Identifier: BSL-1.0
//
// The samples of a context's arms, and the sums over them. The leader adds the samples of each
// synchronisation once, and all policies of the context read. The book has only statistics of an
// arm's own samples. Three other statistics need more, and stay where they are used:
// - the belief's Gaussian needs predictions and the samples of other arms (belief.hpp),
// - the guard's comparisons need native's calls in the same synchronisation (guard.hpp),
// - the report's comparisons also need the number of calls that a comparison stands for
//   (statistics/pairs.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

namespace railpass::select {

/// One timed call, combined over the ranks.
struct observation {
  int arm = 0;
  double seconds = 0;
  /// The call before ran the same arm. After another arm, the time may hold a part of that arm's
  /// call where ranks need not wait for all.
  bool after_itself = true;
  double bytes = -1;  ///< size of the call, if only synchronisations report it; negative: unknown
};

/// Sums over samples.
struct sample_sums {
  std::int64_t samples = 0;
  double sum_s = 0, sum_log = 0, sum_log_squared = 0;  ///< of seconds, of their logarithms

  void add(double seconds) {
    const double log_s = std::log(seconds);
    ++samples;
    sum_s += seconds;
    sum_log += log_s;
    sum_log_squared += log_s * log_s;
  }
  // Once there is a sample:
  double mean_s() const { return sum_s / double(samples); }
  double mean_log() const { return sum_log / double(samples); }
  /// Variance of ln(seconds).
  double variance() const {
    return std::max(0.0, sum_log_squared / double(samples) - mean_log() * mean_log());
  }
};

/// The lower median.
inline double level_of(std::span<const double> times_s) {
  std::vector<double> sorted(times_s.begin(), times_s.end());
  const auto middle = sorted.begin() + std::ptrdiff_t((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

/// The slow calls among the calls of an arm from its fourth sample on.
struct slow_sums {
  /// A call is slow if it takes more than this many usual times of its arm.
  static constexpr double factor = 2;

  double calls = 0;
  double slow = 0;
  double excess = 0;  ///< time of the slow calls beyond `factor`, in usual times

  void add(const slow_sums& other) {
    calls += other.calls;
    slow += other.slow;
    excess += other.excess;
  }
};

/// The times of an arm that has at least one sample.
struct arm_times {
  static constexpr std::size_t few = 5, many = 15;

  int arm = 0;
  sample_sums sums{};
  slow_sums slow{};

  // From the latest synchronisation that has samples of the arm:
  std::vector<double> all_s{}, after_itself_s{};
  double level_s = 0;                 ///< of the calls after itself, if there are any
  double level_before_s = 0;          ///< the level in the synchronisation before; 0 without one
  std::int64_t last_seen = 0;         ///< calls of the context so far
  std::array<double, many> ring_s{};  ///< the latest samples

  bool has_few() const { return sums.samples >= std::int64_t(few); }
  /// The latest samples, at most `many`, in the order of the ring.
  std::span<const double> latest_s() const {
    return {ring_s.data(), std::min(std::size_t(sums.samples), many)};
  }
  /// The latest samples, at most `few`.
  std::vector<double> latest_few_s() const {
    std::vector<double> result;
    for (std::int64_t i = sums.samples; i > 0 && result.size() < few; --i)
      result.push_back(ring_s[std::size_t(i - 1) % many]);
    return result;
  }
  double usual_s() const { return level_of(latest_few_s()); }
};

/// The times of all arms. What find() returns is valid until add().
class arm_book {
 public:
  /// Adds the samples of a synchronisation. Times that are not positive and finite do not count.
  /// @param calls of the context so far
  /// @throws std::bad_alloc; the book is then in an unknown state
  void add(std::span<const observation> merged, std::int64_t calls) {
    calls_before_ = std::exchange(calls_, calls);
    merged_.clear();
    latest_.clear();
    for (const observation& o : merged)
      if (o.seconds > 0 && std::isfinite(o.seconds)) {
        merged_.push_back(o);
        note(o);
      }
    for (const std::size_t i : latest_) sum_up(arms_[i]);
  }

  /// The calls of the context at the latest synchronisation, and at the one before.
  std::int64_t calls() const { return calls_; }
  std::int64_t calls_before() const { return calls_before_; }
  /// The samples of the latest synchronisation, in the order of the calls.
  std::span<const observation> merged() const { return merged_; }

  /// Null if there is no sample of the arm.
  const arm_times* find(int arm) const {
    const auto found = std::ranges::find(arms_, arm, &arm_times::arm);
    return found == arms_.end() ? nullptr : &*found;
  }
  /// Null if the latest synchronisation has no sample of the arm.
  const arm_times* find_latest(int arm) const {
    const arm_times* const a = find(arm);
    return a && std::ranges::find(latest_, std::size_t(a - arms_.data())) != latest_.end()
               ? a
               : nullptr;
  }
  /// The arms of the latest synchronisation, in the order of their first samples there.
  auto latest() const {
    return latest_ |
           std::views::transform([this](std::size_t i) -> const arm_times& { return arms_[i]; });
  }

  /// The share that slow calls add to the arm's mean time; 0 unless the arm clearly has more slow
  /// calls than all other arms. Until these have run, too, slow calls are attributed to the
  /// machine.
  double tail(int arm) const {
    constexpr double least_slow = 3, deviations = 3;
    slow_sums mine, all;
    for (const arm_times& a : arms_) {
      if (a.arm == arm) mine = a.slow;
      all.add(a.slow);
    }
    if (mine.slow < least_slow) return 0;
    const double others = all.calls - mine.calls + 10, slow = all.slow - mine.slow + 0.5;
    const double share = all.slow / all.calls;
    const double spread = std::sqrt(share * (1 - share) * (1 / mine.calls + 1 / others));
    const double more = mine.slow / mine.calls - slow / others;
    return more > deviations * spread ? mine.excess / mine.calls : 0;
  }

 private:
  void note(const observation& o) {
    const auto known = std::ranges::find(arms_, o.arm, &arm_times::arm);
    const auto index = std::size_t(known - arms_.begin());
    if (known == arms_.end()) arms_.push_back({.arm = o.arm});
    arm_times& a = arms_[index];
    if (std::ranges::find(latest_, index) == latest_.end()) {
      latest_.push_back(index);
      a.all_s.clear();
      a.after_itself_s.clear();
      a.last_seen = calls_;
    }
    a.all_s.push_back(o.seconds);
    if (o.after_itself) a.after_itself_s.push_back(o.seconds);
  }

  static void sum_up(arm_times& a) {
    // Many calls define their own usual time, because the latest calls before may all have been
    // slow.
    const double here_s = a.all_s.size() < arm_times::few ? 0 : level_of(a.all_s);
    for (const double t : a.all_s) {
      if (a.sums.samples >= 3) {
        const double usual_s = here_s > 0 ? here_s : a.usual_s();
        ++a.slow.calls;
        if (t > slow_sums::factor * usual_s) {
          ++a.slow.slow;
          a.slow.excess += t / usual_s - slow_sums::factor;
        }
      }
      a.ring_s[std::size_t(a.sums.samples) % arm_times::many] = t;
      a.sums.add(t);
    }
    a.level_before_s =
        std::exchange(a.level_s, level_of(a.after_itself_s.empty() ? a.all_s : a.after_itself_s));
  }

  std::int64_t calls_ = 0, calls_before_ = 0;
  std::vector<observation> merged_;
  std::vector<arm_times> arms_;
  std::vector<std::size_t> latest_;  // positions in arms_
};

}  // namespace railpass::select
