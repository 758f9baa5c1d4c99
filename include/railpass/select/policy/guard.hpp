// SPDX-License-Identifier: BSL-1.0
//
// The guard that keeps tuning from being slower than native. A policy proposes which arm is in use
// and which arms are tried; the guard decides. The models of times live in the policies.
//
// The guard assumes no distribution of times and searches for no changes. It compares calls of an
// arm and of native between the same two synchronisations (*pairs*), because both saw the same
// machine. A call that follows a call of another arm may hold part of that call, so it forms no
// pair.
//
// - An arm comes into use only after it has run, except at the very start, if predictions come from
//   times of this machine. The older a context is, the more pairs an arm must win first.
// - The arm in use is compared with native again before its calls have doubled. It stays unless its
//   sums over the pairs are clearly larger. If earlier runs have hardly measured native, the
//   comparison comes within ten calls: a program of few calls makes no more, and its next run would
//   know as little. Slow calls of an arm count fully once the arm clearly
//   has more slow calls than all other arms; until then they are attributed to the machine.
// - Native replaces the arm in use at once if the arm's latest calls take longer than native did in
//   their comparison, and twice as long as before. Afterwards an arm must win new pairs.
// - The time of trials beyond native's has one budget. The expected cost of an arm that has never
//   run is the mean cost of first calls so far.
// - If ranks share cores, an arm costs the program more than its calls show: the guard adds a share
//   of native's time.
//
// Paired comparisons: Yue, Broder, Kleinberg, Joachims: The k-armed dueling bandits problem,
// Journal of Computer and System Sciences 78(5), 2012, doi:10.1016/j.jcss.2011.12.028. A budget
// against a default arm: Wu, Shariff, Lattimore, Szepesvari: Conservative bandits, ICML 2016,
// arXiv:1602.04282.
#pragma once

#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass::select {

class guarded_policy : public policy {
 public:
  /// @param says_worth compares the arm in use with native so often that its pairs show its gain at
  ///   any time
  explicit guarded_policy(std::unique_ptr<policy> proposing, bool says_worth = false,
                          bool all_wait = false, std::string baseline = "native")
      : proposing_(std::move(proposing)),
        says_worth_(says_worth),
        all_wait_(all_wait),
        baseline_(std::move(baseline)) {
    const auto all = proposing_->arms();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].native) continue;
      native_ = in_use_ = proposed_ = int(i);
      if (!all[i].measured_only)
        native_s_ = native_now_s_ = quiet_s_ = std::exp(all[i].log_seconds);
    }
  }

  void learn(const arm_book& book) override;
  epoch_plan plan(const planning_input& now) override;

  std::span<const arm_prior> arms() const override { return proposing_->arms(); }
  std::vector<double> probabilities() const override { return probability_; }

  /// With enough samples of the arm, the mean is clamped to near the last samples, whatever samples
  /// of other arms suggest.
  std::optional<time_estimate> posterior(int arm) const override {
    std::optional<time_estimate> result = proposing_->posterior(arm);
    const arm_times* const a = times_of(position_of(arm));
    if (!a || !a->has_few()) return result;
    const auto [least, most] = std::ranges::minmax(a->latest_few_s());
    if (!result) result = time_estimate{most, 1};
    result->mean_s = std::clamp(result->mean_s, least / 2, 2 * most);
    return result;
  }

  std::string reason() const override {
    const known_arm* const a = find(in_use_);
    if (in_use_ != native_ && a && a->pairs > 0 && lead(*a) > 0) {
      char text[160];
      const auto percent = [](double of_logarithm) { return 100 * std::expm1(of_logarithm); };
      const double reach = 2 * deviation(*a);
      std::snprintf(text, sizeof text, " in %.0f of %.0f pairs, by %.0f %% (%.0f .. %.0f)", a->wins,
                    a->pairs, percent(lead(*a)), percent(lead(*a) - reach),
                    percent(lead(*a) + reach));
      return "faster than " + baseline_ + text;
    }
    // The proposing policy's reason argues for an arm that is not in use.
    if (in_use_ != proposed_)
      return "stays until the arm with the shorter estimated time has won enough pairs against " +
             baseline_;
    return proposing_->reason();
  }

 private:
  // Budget of trials beyond native: a number of native calls, plus a share of the calls so far.
  static constexpr double first_budget = 40, budget_share = 0.03;
  // The cost of a first call before any was measured, in native calls; has the weight of one call.
  static constexpr double first_call_risk = 5;
  static constexpr double most_remembered = 4;  // pairs
  // The cost of an arm's call beyond its time where ranks share cores, in native's times.
  static constexpr double hidden_on_shared_cores = 0.25;
  // An arm whose calls take this many times as long as before has changed.
  static constexpr double slower = 2;
  // The arm in use is compared with native again when its calls have grown by this factor, a little
  // before they double.
  static constexpr double meeting_growth = 1.8;
  // With says_worth, native is compared after this many calls, or so rarely that each of the two
  // calls of a comparison takes at most this share of the time.
  static constexpr double worth_every = 20, worth_share = 0.005;
  // The first comparisons of an arm in use may take more of the time, and each is in a
  // synchronisation of its own: fewer than four give no result.
  static constexpr double first_worth_share = 0.03;
  static constexpr int first_comparisons = 5;
  static constexpr std::int64_t first_meeting = 64;  // call
  // With fewer samples of native from earlier runs, the first comparison is less than twice as many
  // calls after this call.
  static constexpr std::int64_t enough_of_native = 8, early_meeting = 4;
  static constexpr int pairs_in_turn = 4;
  static constexpr std::size_t most_meetings = 8;  // per plan

  /// An arm that has run.
  struct known_arm {
    int position = 0;  // in arms()
    double ratio = 0;  // its level over native's
    // Sums over the arm's pairs, in units of the median of all calls of their synchronisation. A
    // slow call is left out, because it can happen to any arm; tail() counts such calls.
    double pairs = 0, wins = 0, own = 0, native = 0;
    bool doubted = false;  // must be compared with native before it is in use again
  };

  int position_of(int arm) const {
    const auto all = arms();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].arm == arm) return int(i);
    return -1;
  }
  /// Null if the arm has not run.
  const arm_times* times_of(int position) const {
    return book_ && position >= 0 ? book_->find(number_of(position)) : nullptr;
  }
  int number_of(int position) const { return arms()[std::size_t(position)].arm; }
  const known_arm* find(int position) const {
    const auto found = std::ranges::find(known_, position, &known_arm::position);
    return found == known_.end() ? nullptr : &*found;
  }
  known_arm& at(int position) {
    const auto found = std::ranges::find(known_, position, &known_arm::position);
    if (found != known_.end()) return *found;
    known_.push_back({.position = position});
    return known_.back();
  }

  /// The mean of the times up to `most_s`, if there are any.
  static double mean_of(std::span<const double> times_s, double most_s) {
    double sum = 0;
    int kept = 0;
    for (const double t : times_s)
      if (t <= most_s) sum += t, ++kept;
    return kept > 0 ? sum / kept : most_s;
  }

  void remember(known_arm& a, const arm_times& now) const;
  void note_cost(const arm_times& a, int position);
  void meet(known_arm& a, std::span<const double> own_s, std::span<const double> native_s);
  void note_noise(std::span<const double> times_s);

  /// ln of native's time over the arm's, from their pairs and the slow calls of both.
  double lead(const known_arm& a) const {
    const known_arm* const native = find(native_);
    return std::log(a.native / a.own) - std::log1p(tail(a)) +
           (native ? std::log1p(tail(*native)) : 0);
  }
  double tail(const known_arm& a) const { return book_->tail(number_of(a.position)); }
  /// The standard deviation of lead().
  double deviation(const known_arm& a) const {
    return std::sqrt(2 * noise_squares_ / noise_samples_ / a.pairs);
  }
  /// A challenger needs more pairs the longer the context has run.
  double needed_pairs() const { return std::min(4.0, double(learnt_at_) / 512); }
  bool may_be_used(int position) const;
  /// Seconds by which a call of the arm is slower than native, now.
  double price_s(int position) const;
  double left_to_spend_s() const {
    return first_budget * quiet_s_ + budget_share * passed_s_ - spent_s_;
  }
  /// The hidden cost of an arm's call, as a share of native's time.
  double hidden() const { return shares_cores_ ? hidden_on_shared_cores : 0; }
  /// Whether the samples of native from earlier runs are few, and do not show clearly that native
  /// is slower than the arm in use.
  bool is_native_hardly_known() const {
    const arm_prior &own = arms()[std::size_t(in_use_)], &native = arms()[std::size_t(native_)];
    const arm_times* const now = times_of(native_);
    return own.remembered && native.remembered &&
           native.earlier_samples + (now ? now->sums.samples : 0) < enough_of_native &&
           native.log_seconds - own.log_seconds < 2 * std::hypot(own.spread, native.spread);
  }
  void leave_out_what_is_too_dear(std::vector<exploration>& explore) const;
  static void put_together(std::vector<exploration>& explore);
  void add_meetings(epoch_plan& p, const planning_input& now) const;
  void publish(const epoch_plan& p);

  std::unique_ptr<policy> proposing_;
  const arm_book* book_ = nullptr;  // null: nothing is learnt yet
  bool says_worth_, all_wait_;
  std::string baseline_;
  bool shares_cores_ = false;  // recently
  std::vector<known_arm> known_;
  std::vector<double> probability_;             // by position in arms()
  int native_ = 0, in_use_ = 0, proposed_ = 0;  // positions
  double native_s_ = 0;                         // when it was last seen; 0: unknown
  double native_now_s_ = 0;                     // estimated from the arm in use
  double quiet_s_ = 0;                          // the shortest so far
  int comparisons_ = 0;                         // of the arm in use, by synchronisations
  std::int64_t met_at_ = 0;                     // a call before the last comparison with native
  std::int64_t learnt_at_ = 0;                  // call
  double passed_s_ = 0;                         // time of all calls if they had been native's
  double spent_s_ = 0;
  double lost_in_first_calls_ = 0, first_calls_ = 0;
  // Squared deviations of single calls' logarithms; starts from a guess.
  double noise_squares_ = 5 * 0.25 * 0.25, noise_samples_ = 5;
};

// ---- learning

inline void guarded_policy::learn(const arm_book& book) {
  if (!book_) learnt_at_ = book.calls_before();
  book_ = &book;
  // Without calls of native, the calls of the arm in use show the state of the machine.
  std::vector<double> native_s;  // for comparisons
  const known_arm* const used = find(in_use_);
  const arm_times* const native = book.find_latest(number_of(native_));
  const arm_times* const of_used = book.find_latest(number_of(in_use_));
  if (native) {
    native_s = native->after_itself_s;
    native_s_ = native_now_s_ = native->level_s;
    quiet_s_ = quiet_s_ > 0 ? std::min(quiet_s_, native_s_) : native_s_;
    met_at_ = in_use_ == native_ ? book.calls() : learnt_at_;
    if (in_use_ != native_ && of_used) ++comparisons_;
  } else if (of_used && used && used->ratio > 0) {
    for (const double t : of_used->after_itself_s) native_s.push_back(t / used->ratio);
    native_now_s_ = of_used->level_s / used->ratio;
  }
  passed_s_ += double(book.calls() - learnt_at_) * native_now_s_;
  learnt_at_ = book.calls();

  for (const arm_times& one : book.latest()) {
    const int position = position_of(one.arm);
    if (position < 0) continue;
    note_cost(one, position);
    known_arm& a = at(position);
    const bool in_use = position == in_use_;
    if (one.level_before_s == 0) remember(a, one);
    if (position != native_) {
      if (native || !in_use) {
        if (!native_s.empty() && !one.after_itself_s.empty()) meet(a, one.after_itself_s, native_s);
      } else if (one.all_s.size() >= 2 && one.level_s > native_s_ &&
                 one.level_s > slower * one.level_before_s) {
        a.pairs = a.wins = a.own = a.native = 0;
        a.doubted = true;
      }
    }
    if (native_now_s_ > 0 && (native || !in_use || a.ratio == 0))
      a.ratio = one.level_s / native_now_s_;
  }
  proposing_->learn(book);
}

/// An arm that takes as long as in an earlier run keeps that run's comparison with native.
inline void guarded_policy::remember(known_arm& a, const arm_times& now) const {
  const arm_prior &own = arms()[std::size_t(a.position)], &native = arms()[std::size_t(native_)];
  if (a.position == native_ || !native.remembered || !is_as_before(own, &now)) return;
  a.pairs = a.own = std::clamp(double(native.earlier_samples), 1.0, most_remembered);
  a.native = a.pairs * std::exp(native.log_seconds - own.log_seconds);
  a.wins = a.native > a.own ? a.pairs : 0;
}

/// Notes what the calls lose against native.
inline void guarded_policy::note_cost(const arm_times& a, int position) {
  bool is_first = position != native_ && !find(position);
  for (const double t : a.all_s) {
    const double hidden_s = position != native_ ? hidden() * native_now_s_ : 0;
    const double lost_s = native_now_s_ > 0 ? std::max(0.0, t + hidden_s - native_now_s_) : 0;
    if (std::exchange(is_first, false)) {
      ++first_calls_;
      if (lost_s > 0) lost_in_first_calls_ += lost_s / native_now_s_;
    }
    if (position != in_use_) spent_s_ += lost_s;
  }
}

inline void guarded_policy::meet(known_arm& a, std::span<const double> own_s,
                                 std::span<const double> native_s) {
  std::vector<double> all(own_s.begin(), own_s.end());
  all.insert(all.end(), native_s.begin(), native_s.end());
  const double middle_s = level_of(all);
  const std::size_t n = std::min(own_s.size(), native_s.size());
  a.pairs += double(n);
  a.own += double(n) * mean_of(own_s, slow_sums::factor * middle_s) / middle_s;
  a.native += double(n) * mean_of(native_s, slow_sums::factor * middle_s) / middle_s;
  for (std::size_t i = 0; i < n; ++i) a.wins += own_s[i] < native_s[i] ? 1 : 0;
  a.doubted = false;
  note_noise(own_s);
  note_noise(native_s);
}

inline void guarded_policy::note_noise(std::span<const double> times_s) {
  if (times_s.size() < 2) return;
  const double level_s = level_of({times_s.begin(), times_s.end()});
  for (const double t : times_s) {
    const double off = std::min(std::abs(std::log(t / level_s)), 1.0);
    noise_squares_ += off * off;
    ++noise_samples_;
  }
}

// ---- deciding

inline bool guarded_policy::may_be_used(int position) const {
  if (position == native_) return true;
  const known_arm* const a = find(position);
  if (!a)
    return !arms()[std::size_t(position)].measured_only &&
           arms()[std::size_t(position)].spread <= trusted_spread &&
           (learnt_at_ == 0 || position == in_use_);
  if (a->doubted) return false;
  // Early, the policy's predictions and measurements of earlier runs are more reliable than pairs.
  if (a->pairs == 0 && learnt_at_ < first_meeting) return true;
  if (a->pairs == 0) return position == in_use_ && a->ratio > 0 && a->ratio < 1;
  if (position != in_use_ && a->pairs < needed_pairs()) return false;
  const double doubt = position == in_use_ ? deviation(*a) : 0;
  return lead(*a) > std::log1p(hidden()) - doubt;
}

inline double guarded_policy::price_s(int position) const {
  if (position == native_) return 0;
  const known_arm* const a = find(position);
  const double more =
      a ? a->ratio - 1 : (first_call_risk + lost_in_first_calls_) / (1 + first_calls_);
  return native_now_s_ * std::max(0.0, more + hidden());
}

inline void guarded_policy::leave_out_what_is_too_dear(std::vector<exploration>& explore) const {
  double left_s = left_to_spend_s();
  std::erase_if(explore, [&](const exploration& e) {
    const double price = price_s(position_of(e.arm));
    if (price > 0 && price > left_s) return true;
    left_s -= price;
    return false;
  });
}

/// Makes an arm's calls consecutive, because only calls after a call of the same arm form pairs.
inline void guarded_policy::put_together(std::vector<exploration>& explore) {
  for (std::size_t i = 0; i < explore.size(); ++i)
    for (std::size_t k = i; k-- > 0;)
      if (explore[k].arm == explore[i].arm) {
        explore[i].position = explore[k].position + 1;
        break;
      }
}

inline epoch_plan guarded_policy::plan(const planning_input& now) {
  shares_cores_ = now.shares_cores;
  epoch_plan p = proposing_->plan(now);
  proposed_ = position_of(p.incumbent);
  const int used_before = in_use_;
  if (!may_be_used(in_use_)) in_use_ = native_;
  if (may_be_used(proposed_)) in_use_ = proposed_;
  if (in_use_ != used_before) comparisons_ = 0;
  p.incumbent = number_of(in_use_);
  leave_out_what_is_too_dear(p.explore);
  put_together(p.explore);
  add_meetings(p, now);
  publish(p);
  return p;
}

/// Adds calls of native while another arm is in use, and alternating calls of a challenger and the
/// arm in use.
inline void guarded_policy::add_meetings(epoch_plan& p, const planning_input& now) const {
  p.explore.resize(std::min(p.explore.size(), epoch_plan::max_explore - 2 * most_meetings));
  const auto add = [&](double call, int position) {
    if (p.explore.size() < epoch_plan::max_explore)
      p.explore.push_back({int(std::clamp(call, 0.0, 1e9)), number_of(position)});
  };
  std::optional<int> early_end;  // the last call of an early comparison
  if (in_use_ != native_) {
    // Several plans ahead, because an expensive synchronisation may be late.
    const known_arm* const a = find(in_use_);
    const bool was_met = is_as_before(arms()[std::size_t(in_use_)], times_of(in_use_));
    const bool is_early = is_native_hardly_known();
    const double from = double(std::max(met_at_, is_early  ? early_meeting
                                                 : was_met ? 4 * first_meeting
                                                           : first_meeting));
    // A call may hold the rest of the call before it, so the second call counts.
    const bool is_clear = a && a->pairs > 0 && lead(*a) > 3 * deviation(*a);
    const int calls = all_wait_ && (is_early || is_clear) ? 1 : 2;
    double most = 64 * from;  // calls to the next comparison
    if (says_worth_) {
      const arm_times *const own = times_of(in_use_), *const native = times_of(native_);
      const double more = own && native ? native->usual_s() / own->usual_s() - 1 : 0;
      const bool tells_little = comparisons_ < first_comparisons;
      most = std::max(worth_every, more / (tells_little ? first_worth_share : worth_share));
      p.length =
          std::min(p.length, int(std::min(double(tells_little ? 1 : most_meetings) * most, 1e9)));
    }
    double due = std::max(from, double(now.calls) - most);
    for (std::size_t met = 0; met < most_meetings; ++met) {
      due = std::min(meeting_growth * due, due + most);
      for (int i = 0; i < calls; ++i) add(due - double(now.calls) + i, native_);
      // The plan ends with this comparison, so that this run and later runs know its result.
      if (is_early && met == 0) {
        p.length = int(std::clamp(due - double(now.calls) + calls, 1.0, double(p.length)));
        early_end = p.length - 1;
      }
    }
  }
  if (proposed_ != in_use_) {
    const known_arm* const a = find(proposed_);
    const double have = a ? a->pairs : 0;
    int pairs = have < 1    ? std::max(1, int(std::ceil(needed_pairs())))
                : have < 4  ? 3
                : have < 12 ? 8
                            : 16;
    if (const double price = price_s(proposed_); price > 0)
      pairs = int(std::clamp(left_to_spend_s() / price, 0.0, double(pairs)));
    // Alternating turns of a few pairs; each turn has one call before its pairs.
    int position = 1;
    for (int left = pairs; left > 0; left -= pairs_in_turn) {
      const int calls = std::min(left, pairs_in_turn) + (all_wait_ ? 0 : 1);
      for (int i = 0; i < calls; ++i) add(position + i, proposed_);
      if (in_use_ != native_)  // timed in any case
        for (int i = 0; i < calls; ++i) add(position + calls + i, in_use_);
      position += 2 * calls;
    }
    if (pairs > 0) p.length = std::max({p.length, position, int(p.explore.size()) + pairs});
  }
  std::ranges::stable_sort(p.explore, {}, &exploration::position);
  std::size_t met = 0;  // entries up to the last call of an early comparison
  for (std::size_t i = 0; early_end && i < p.explore.size(); ++i)
    if (p.explore[i].arm == number_of(native_) && p.explore[i].position <= *early_end) met = i + 1;
  for (std::size_t i = 1; i < p.explore.size(); ++i)
    p.explore[i].position = std::max(p.explore[i].position, p.explore[i - 1].position + 1);
  if (met > 0) p.length = std::max(p.length, p.explore[met - 1].position + 1);
}

inline void guarded_policy::publish(const epoch_plan& p) {
  probability_.assign(arms().size(), 0);
  int tried = 0;
  for (const exploration& e : p.explore) {
    if (e.position >= p.length) continue;
    probability_[std::size_t(position_of(e.arm))] += 1.0 / p.length;
    ++tried;
  }
  probability_[std::size_t(in_use_)] += 1 - double(tried) / p.length;
}

}  // namespace railpass::select
