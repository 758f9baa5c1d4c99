// SPDX-License-Identifier: BSL-1.0
//
// What an arm is worth beside native, from meetings: calls of both between the same two merges.
// Both saw the same machine then, so what they say holds whatever it did before and after. Each is
// a call whose call before ran the same arm, as a call holds what that one left to be done.
#pragma once

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

/// The meetings of one arm: calls of it and of native that saw the same machine.
class all_meetings {
 public:
  /// Both have some calls, the arm's and native's. Throws std::bad_alloc.
  void add(std::span<const double> own_s, std::span<const double> native_s) {
    const std::size_t n = std::min(own_s.size(), native_s.size());
    pairs_ += std::int64_t(n);
    for (std::size_t i = 0; i < n; ++i) wins_ += own_s[i] < native_s[i] ? 1 : 0;
    if (seen_++ % stride_ != 0) return;
    if (meetings_.size() == most_meetings) {
      for (std::size_t i = 1; i < most_meetings / 2; ++i)
        meetings_[i] = std::move(meetings_[2 * i]);
      meetings_.resize(most_meetings / 2);
      stride_ *= 2;
    }
    meetings_.push_back({some_of(own_s), some_of(native_s)});
  }

  /// Nothing if there were none. The gain is the shift that makes the arm's calls as often longer
  /// as shorter than native's of the same meeting (Hodges, Lehmann, doi:10.1214/aoms/1177704172),
  /// its error by the rank sums of the meetings, each a stratum (van Elteren, 1960): what the
  /// machine adds to few calls or many moves neither, as it is added to both. What an arm's own
  /// slow calls add is another question, which the ranks do not answer: see add_slow_calls().
  std::optional<pair_record> record() const {
    if (meetings_.empty()) return std::nullopt;
    pair_record r{.pairs = pairs_, .wins = wins_};
    std::vector<difference> all;
    double middle = 0, variance = 0;  // of the weighted rank sum
    for (const meeting& m : meetings_) {
      for (const float own : m.log_own)
        for (const float native : m.log_native) all.push_back({native - own, m.weight()});
      middle += m.weight() * m.differences() / 2;
      variance += m.weight() * m.differences() / 12;  // were all calls of a meeting alike
    }
    std::ranges::sort(all, {}, &difference::of_logs);
    r.gain = at(all, middle);
    if (meetings_.size() < 2) return r;
    // Calls of one while may be more alike than that: then the meetings are further apart.
    double squares = 0;
    for (const meeting& m : meetings_) squares += std::pow(m.weight() * m.above(r.gain), 2);
    const double n = double(meetings_.size()), few = few_meetings(meetings_.size() - 1);
    variance = std::max(variance, few * few * squares * n / (n - 1));
    const double reach = deviations * std::sqrt(variance);
    if (reach >= middle) return r;  // too few to say
    r.deviation =
        std::max(r.gain - at(all, middle - reach), at(all, middle + reach) - r.gain) / deviations;
    add_slow_calls(r);
    return r;
  }

 private:
  static constexpr std::size_t most_meetings = 64;  // then every second one is kept
  static constexpr std::size_t most_calls = 16;     // of each of both, in a meeting
  static constexpr double deviations = 1.96;        // 95 %

  struct difference {
    float of_logs;  // native's less the arm's
    double weight;
  };
  struct meeting {
    std::vector<float> log_own, log_native;
    double differences() const { return double(log_own.size() * log_native.size()); }
    double weight() const { return 1 / double(log_own.size() + log_native.size() + 1); }
    /// How many differences are above `gain`, beyond half of them.
    double above(double gain) const {
      double sum = 0;
      for (const float own : log_own)
        for (const float native : log_native) {
          const double beyond = double(native - own) - gain;
          sum += beyond > 1e-6 ? 0.5 : beyond < -1e-6 ? -0.5 : 0;
        }
      return sum;
    }
  };
  /// What slow calls add to a call of an arm: in its usual times, each counted as at most `most`.
  struct slow_calls {
    static constexpr double slow = 1.2, most = 10;
    double calls = 0, sum = 0, squares = 0, whole_sum = 0, whole_squares = 0;
    void add(double usual_times) {
      ++calls;
      if (usual_times <= slow) return;
      const double beyond = usual_times - 1, counted = std::min(usual_times, most) - 1;
      sum += counted;
      squares += counted * counted;
      whole_sum += beyond;
      whole_squares += beyond * beyond;
    }
    double mean() const { return 1 + whole_sum / calls; }
    double variance_of_log() const { return whole_squares / std::pow(calls * mean(), 2); }
  };

  /// Slow calls are the machine's, and both have as many, unless these calls show otherwise: by two
  /// standard errors, then they count as they are. Until then no gain is claimed that is less than
  /// what they seem to add to the arm's calls, or than half of the error of that, and no loss that
  /// is less than what they seem to add to native's.
  void add_slow_calls(pair_record& r) const {
    slow_calls own, native;
    for (const meeting& m : meetings_) {
      std::vector<double> logs(m.log_own.begin(), m.log_own.end());
      for (const float log_s : m.log_native) logs.push_back(log_s - r.gain);
      // The lower one of two in the middle: of a call of each the quick one is usual.
      std::vector<double> sorted = logs;
      const auto usual = sorted.begin() + std::ptrdiff_t((sorted.size() - 1) / 2);
      std::ranges::nth_element(sorted, usual);
      for (std::size_t i = 0; i < logs.size(); ++i)
        (i < m.log_own.size() ? own : native).add(std::exp(logs[i] - *usual));
    }
    const double more = own.sum / own.calls - native.sum / native.calls,
                 error = std::sqrt((own.squares + native.squares) / (own.calls + native.calls) *
                                   (1 / own.calls + 1 / native.calls));
    if (std::abs(more) >= 2 * error && error > 0) {
      r.gain += std::log(native.mean() / own.mean());
      r.deviation =
          std::sqrt(*r.deviation * *r.deviation + own.variance_of_log() + native.variance_of_log());
    } else {
      const double against = r.gain > 0 ? more : -more;
      r.deviation = std::max(*r.deviation, std::max(against, error / 2) / deviations);
    }
  }

  /// Evenly over the sample, as logarithms.
  static std::vector<float> some_of(std::span<const double> times_s) {
    const std::size_t kept = std::min(times_s.size(), most_calls);
    std::vector<float> logs;
    for (std::size_t i = 0; i < kept; ++i)
      logs.push_back(float(std::log(times_s[i * times_s.size() / kept])));
    return logs;
  }
  /// The difference at this place of their sorted sequence, by weight.
  static double at(std::span<const difference> sorted, double place) {
    for (const difference& d : sorted)
      if ((place -= d.weight) <= 0) return d.of_logs;
    return sorted.back().of_logs;
  }
  /// Student's t for 95 %, in that of infinitely many.
  static double few_meetings(std::size_t degrees_of_freedom) {
    constexpr std::array of_few{12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31};
    return degrees_of_freedom <= of_few.size() ? of_few[degrees_of_freedom - 1] / deviations
                                               : 1 + 1.3 / double(degrees_of_freedom);
  }

  std::vector<meeting> meetings_;
  std::int64_t seen_ = 0, stride_ = 1;
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
