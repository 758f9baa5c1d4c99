// SPDX-License-Identifier: BSL-1.0
//
// Selects an arm for a problem from measurements of other problems, by two methods. The first is
// the method of Feki, Gabriel: Incorporating Historic Knowledge into a Self-Optimizing
// Communication Library. The second is railpass' own, from_curves(). docs/explanation/adcl.md
// explains where the paper contradicts itself, and compares the methods.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/select/belief/neighbours.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::knowledge {

/// The measured time of an arm.
struct timing {
  double seconds = 0;
  double error = 0;  ///< standard deviation of ln(seconds), as measured
};

/// A problem and the times of the arms for it.
struct instance {
  /// The paper's vector of message lengths. Here bytes, or bytes and ranks; at least 0.
  std::vector<double> coordinates{};
  std::vector<std::optional<timing>> arms{};  ///< by number; empty: the arm did not or cannot run
};

/// The distance between problems.
enum class metric {
  lengths,    ///< the paper's: Euclidean distance of the coordinates
  logarithms  ///< Euclidean distance of their logarithms, in octaves; values below 1 count as 1
};

/// @throws error if the numbers of coordinates differ
inline double distance(std::span<const double> a, std::span<const double> b, metric by) {
  if (a.size() != b.size())
    throw error("knowledge: expected problems with equal numbers of coordinates, got " +
                std::to_string(a.size()) + " and " + std::to_string(b.size()));
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = by == metric::lengths
                             ? a[i] - b[i]
                             : std::log2(std::max(1.0, a[i])) - std::log2(std::max(1.0, b[i]));
    squares += apart * apart;
  }
  return std::sqrt(squares);
}

/// Defines when two problems are similar. All problems within D_max of a problem are similar to it.
enum class similarity {
  /// Other problems' best arms are good enough for this problem. The paper's text describes this
  /// variant: the best arm of any problem within D_max of this problem is good enough for this
  /// problem.
  others_serve_it,
  /// This problem's best arm is good enough for the other problems, as in the paper's Algorithm 1:
  /// the arm is good enough for any problem within D_max.
  it_serves_others
};

/// The relation of a problem to another problem.
struct relation {
  double distance = 0;
  bool similar = false;
};

namespace detail {

/// Compares up to rounding errors.
inline bool at_most(double distance, double limit) { return distance <= limit * (1 + 1e-9); }

}  // namespace detail

/// D_max: the largest distance up to which all problems are similar; 0 if the closest problem is
/// not. Problems at equal distance count only together.
inline double largest_similar_distance(std::vector<relation> others) {
  std::ranges::sort(others, {}, &relation::distance);
  double reached = 0;
  for (auto next = others.begin(); next != others.end();) {
    const double here = next->distance;
    for (; next != others.end() && detail::at_most(next->distance, here); ++next)
      if (!next->similar) return reached;
    reached = here;
  }
  return reached;
}

/// The selected arm.
struct forecast {
  int arm = 0;
  double seconds = 0;    ///< expected time
  double largest_s = 0;  ///< the paper's MaxExecTime: a longer time contradicts the forecast
};

/// A forecast, or the reason why there is none.
struct prediction {
  std::optional<forecast> made{};
  std::string_view why_not{};  ///< empty if there is a forecast
};

struct analysis_options {
  double p_max = 0.1;  ///< an arm is good enough up to 1 + p_max times the best arm's time
  metric by = metric::logarithms;
  similarity similar = similarity::others_serve_it;
};

class analysis {
 public:
  /// @throws error if the problems' sizes differ, a problem has no time, or a number is out of
  ///   range
  explicit analysis(std::vector<instance> known, const analysis_options& o = {})
      : known_(std::move(known)), options_(o) {
    check();
    for (const instance& i : known_) winners_.push_back(winner_of(i));
  }

  std::size_t size() const { return known_.size(); }
  const instance& problem(std::size_t i) const { return known_[i]; }
  int winner(std::size_t i) const { return winners_[i]; }
  /// D_max of problem `i`. Compares the problem with all other problems.
  double reach(std::size_t i) const {
    std::vector<relation> others;
    for (std::size_t j = 0; j < known_.size(); ++j)
      if (j != i) others.push_back({apart(known_[i], known_[j]), are_similar(i, j)});
    return largest_similar_distance(std::move(others));
  }

  bool is_good(std::size_t problem, int arm) const {
    const auto& t = known_[problem].arms[std::size_t(arm)];
    return t && t->seconds <= (1 + options_.p_max) * time_of(problem, winners_[problem]);
  }
  /// The top cluster: the arms that are good enough, by number.
  std::vector<int> good_arms(std::size_t problem) const {
    std::vector<int> good;
    for (std::size_t a = 0; a < known_[problem].arms.size(); ++a)
      if (is_good(problem, int(a))) good.push_back(int(a));
    return good;
  }

  /// The paper's Algorithm 2: the best arm of the closest problem within whose D_max the
  /// coordinates are. (The paper starts with its first problem, near or not.)
  prediction from_closest(std::span<const double> coordinates) const {
    const std::vector<double> away = distances(coordinates);
    std::optional<std::size_t> closest;
    for (const std::size_t i : reaching(away))
      if (!closest || away[i] < away[*closest]) closest = i;
    if (!closest) return {.why_not = why_none()};
    std::vector<std::size_t> all(known_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return made(winners_[*closest], all, away);
  }

  /// The paper's Algorithm 3: the problems within whose D_max the coordinates are vote for their
  /// best arms, each with weight 1 / distance. If the same problem is known, only that problem
  /// votes.
  prediction from_similar(std::span<const double> coordinates) const {
    const std::vector<double> away = distances(coordinates);
    std::vector<std::size_t> voters = reaching(away);
    if (voters.empty()) return {.why_not = why_none()};
    const auto is_it = [&](std::size_t i) { return away[i] == 0; };
    const bool known = std::ranges::any_of(voters, is_it);
    if (known) std::erase_if(voters, [&](std::size_t i) { return !is_it(i); });
    std::vector<double> votes(known_.front().arms.size());
    for (const std::size_t i : voters) votes[std::size_t(winners_[i])] += known ? 1 : 1 / away[i];
    const int most = int(std::ranges::max_element(votes) - votes.begin());
    return made(most, voters, away);
  }

  /// railpass' own method: interpolates the time of each arm between smaller and larger problems,
  /// and selects the fastest arm. Interpolation is linear between the logarithms of times and of
  /// coordinates, whichever metric the options name.
  prediction from_curves(std::span<const double> coordinates) const;

 private:
  // Error of linear interpolation, per squared octave between two problems: times bend, and step
  // where protocols change.
  static constexpr double error_per_square_octave = 0.3;
  // The next run differs by at least this, however often an arm was timed.
  static constexpr double least_error = 0.01;
  // Problems further down the list would hardly count.
  static constexpr std::size_t most_near = 32;

  void check() const {
    if (!(options_.p_max >= 0 && std::isfinite(options_.p_max)))
      throw error("knowledge: expected p_max of 0 or more");
    for (const instance& i : known_) {
      if (i.coordinates.size() != known_.front().coordinates.size() ||
          i.arms.size() != known_.front().arms.size())
        throw error(
            "knowledge: expected equal numbers of coordinates and of arms for all problems");
      for (const double c : i.coordinates)
        if (!(c >= 0 && std::isfinite(c)))
          throw error("knowledge: expected coordinates of 0 or more");
      for (const auto& t : i.arms)
        if (t && !(t->seconds > 0 && std::isfinite(t->seconds) && t->error >= 0 &&
                   std::isfinite(t->error)))
          throw error("knowledge: expected times above 0 s, with errors of 0 or more");
      if (std::ranges::none_of(i.arms, [](const auto& t) { return t.has_value(); }))
        throw error("knowledge: expected a time of an arm for each problem");
    }
  }

  static int winner_of(const instance& i) {
    int best = -1;
    for (std::size_t a = 0; a < i.arms.size(); ++a)
      if (i.arms[a] && (best < 0 || i.arms[a]->seconds < i.arms[std::size_t(best)]->seconds))
        best = int(a);
    return best;
  }
  double time_of(std::size_t problem, int arm) const {
    return known_[problem].arms[std::size_t(arm)]->seconds;
  }
  double apart(const instance& a, const instance& b) const {
    return distance(a.coordinates, b.coordinates, options_.by);
  }
  bool are_similar(std::size_t of, std::size_t other) const {
    return options_.similar == similarity::others_serve_it ? is_good(of, winners_[other])
                                                           : is_good(other, winners_[of]);
  }

  std::vector<double> distances(std::span<const double> coordinates) const {
    std::vector<double> away;
    for (const instance& i : known_)
      away.push_back(distance(coordinates, i.coordinates, options_.by));
    return away;
  }
  std::vector<std::size_t> reaching(std::span<const double> away) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < away.size(); ++i)
      if (detail::at_most(away[i], reach(i))) found.push_back(i);
    return found;
  }
  std::string_view why_none() const {
    return known_.empty() ? "no problem is known" : "no known problem reaches that far";
  }

  /// The forecast for an arm, interpolated between two problems with a time for the arm: the
  /// closest problem, and the closest problem beyond the new problem.
  prediction made(int arm, std::span<const std::size_t> of, std::span<const double> away) const {
    const auto closer = [&](std::optional<std::size_t> so_far, std::size_t i) {
      return known_[i].arms[std::size_t(arm)] && (!so_far || away[i] < away[*so_far]);
    };
    std::optional<std::size_t> near, beyond;
    for (const std::size_t i : of)
      if (closer(near, i)) near = i;
    for (const std::size_t i : of)
      if (closer(beyond, i) && is_between(away[*near], away[i], apart(known_[*near], known_[i])))
        beyond = i;
    double seconds = time_of(*near, arm);
    if (beyond && away[*near] > 0) {
      const double share = away[*near] / (away[*near] + away[*beyond]);
      const double other_s = time_of(*beyond, arm);
      seconds = options_.by == metric::lengths
                    ? (1 - share) * seconds + share * other_s
                    : std::exp((1 - share) * std::log(seconds) + share * std::log(other_s));
    }
    return {.made = forecast{arm, seconds, (1 + options_.p_max) * seconds}};
  }

  /// Whether a problem at these distances from two problems is between them rather than beside
  /// both.
  static bool is_between(double from_one, double from_other, double apart) {
    return apart * apart >= from_one * from_one + from_other * from_other;
  }

  std::vector<instance> known_;
  analysis_options options_;
  std::vector<int> winners_;
};

inline prediction analysis::from_curves(std::span<const double> coordinates) const {
  if (known_.empty()) return {.why_not = "no problem is known"};
  struct near_problem {
    std::size_t problem = 0;
    double octaves = 0;
  };
  std::vector<near_problem> near;  // sorted by distance
  for (std::size_t i = 0; i < known_.size(); ++i)
    if (const double octaves = distance(coordinates, known_[i].coordinates, metric::logarithms);
        octaves <= select::most_octaves)
      near.push_back({i, octaves});
  if (near.empty()) return {.why_not = "no known problem is near"};
  std::ranges::stable_sort(near, {}, &near_problem::octaves);
  near.resize(std::min(near.size(), most_near));

  // Pairs of problems with this problem between them give a time for an arm. Pairs that are further
  // apart weigh less, but they count where times are uncertain.
  struct two_sides {
    std::size_t one = 0, other = 0;
    double share_of_one = 0, variance = 0;
  };
  const auto square = [](double x) { return x * x; };
  std::vector<two_sides> lines;
  for (std::size_t i = 0; i < near.size(); ++i)
    for (std::size_t j = i + 1; j < near.size(); ++j) {
      const double to_i = near[i].octaves, to_j = near[j].octaves, both = to_i + to_j;
      const instance &one = known_[near[i].problem], &other = known_[near[j].problem];
      const double apart = distance(one.coordinates, other.coordinates, metric::logarithms);
      if (both > 0 && is_between(to_i, to_j, apart))
        lines.push_back({near[i].problem, near[j].problem, to_j / both,
                         square(error_per_square_octave * both * both)});
    }
  const std::size_t num_arms = known_.front().arms.size();
  std::vector<std::optional<double>> logs(num_arms);  // ln(seconds) here
  for (std::size_t a = 0; a < num_arms; ++a) {
    double weights = 0, sum = 0;
    const auto count = [&](double log_s, double variance) {
      weights += 1 / (variance + square(least_error));
      sum += log_s / (variance + square(least_error));
    };
    for (const two_sides& l : lines) {
      const auto &one = known_[l.one].arms[a], &other = known_[l.other].arms[a];
      if (!one || !other) continue;
      const double of_one = l.share_of_one, of_other = 1 - of_one;
      count(of_one * std::log(one->seconds) + of_other * std::log(other->seconds),
            square(of_one * one->error) + square(of_other * other->error) + l.variance);
    }
    // The same problem counts, too.
    for (const near_problem& p : near)
      if (const auto& here = known_[p.problem].arms[a]; here && p.octaves == 0)
        count(std::log(here->seconds), square(here->error));
    if (weights > 0) logs[a] = sum / weights;
  }
  // An arm known on one side only keeps its ratio to the best known arm, from the near problem.
  std::vector<std::optional<double>> all = logs;
  for (std::size_t a = 0; a < num_arms; ++a) {
    const auto there = std::ranges::find_if(
        near, [&](const near_problem& p) { return known_[p.problem].arms[a].has_value(); });
    if (logs[a] || there == near.end()) continue;
    const auto& times = known_[there->problem].arms;
    std::optional<std::size_t> best;
    for (std::size_t b = 0; b < num_arms; ++b)
      if (logs[b] && times[b] && (!best || times[b]->seconds < times[*best]->seconds)) best = b;
    all[a] = std::log(times[a]->seconds);
    if (best) *all[a] += *logs[*best] - std::log(times[*best]->seconds);
  }
  int least = -1;
  for (std::size_t a = 0; a < num_arms; ++a)
    if (all[a] && (least < 0 || *all[a] < *all[std::size_t(least)])) least = int(a);
  const double seconds = std::exp(*all[std::size_t(least)]);
  return {.made = forecast{least, seconds, (1 + options_.p_max) * seconds}};
}

}  // namespace railpass::knowledge
