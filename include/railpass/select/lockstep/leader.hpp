// SPDX-License-Identifier: BSL-1.0
//
// The leader of a communicator (rank 0): it learns from synchronisations, asks the contexts'
// policies for plans, and says when the next synchronisation is wanted. Every rank's part is in
// lockstep.hpp.
#pragma once

#include "railpass/base/statistics.hpp"
#include "railpass/select/lockstep/account.hpp"
#include "railpass/select/lockstep/followed_context.hpp"
#include "railpass/select/lockstep/merge_costs.hpp"
#include "railpass/select/lockstep/merge_pacing.hpp"
#include "railpass/select/lockstep/merge_words.hpp"
#include "railpass/select/lockstep/sizes.hpp"
#include "railpass/select/lockstep/skew.hpp"
#include "railpass/select/lockstep/thinned.hpp"
#include "railpass/select/policy/policy.hpp"
#include "railpass/select/statistics/pairs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace railpass::select {

/// The leader's statistics of one arm of a context.
struct arm_record {
  int arm = 0;
  std::int64_t calls = 0;
  sample_sums sums{};             ///< over timed calls that were merged
  double exploration_cost_s = 0;  ///< exploring calls: time beyond the incumbent's mean
  thinned_times some_s{};         ///< a selection of the samples
  all_meetings meetings{};        ///< comparisons with native, while the arm was in use
  /// Estimated time of calls: each call counts the mean of the next synchronisation's samples.
  double time_s = 0;
  std::int64_t timed_calls = 0;  ///< calls in time_s
  double latest_s = 0;           ///< the latest of these means
  bool was_checked = false;      ///< the result of at least one call
};

/// Checks of results in a context.
struct check_costs {
  std::int64_t calls = 0;
  double seconds = 0;
};

/// Whether the times of all arms are known so well that no other arm is likely to be clearly
/// faster.
inline bool is_likely_best(const policy& p, int arm) {
  constexpr double clearly = 0.1, deviations = 2;  // of the logarithm
  const auto own = p.posterior(arm);
  return own && std::ranges::all_of(p.arms(), [&](const arm_prior& other) {
           const auto its = p.posterior(other.arm);
           return other.arm == arm ||
                  (its && std::log(own->mean_s / its->mean_s) +
                                  deviations * std::hypot(own->spread, its->spread) <
                              clearly);
         });
}

/// Contexts have the same numbers as the followed contexts that the caller passes in.
class leader {
 public:
  /// Reserves memory for `contexts` contexts, so that add_context() does not throw.
  /// @throws std::bad_alloc
  void reserve(std::size_t contexts) {
    led_.reserve(contexts);
    merged_.reserve(merge_report::max_samples);
  }
  bool has_room() const { return led_.size() < led_.capacity(); }
  void add_context(int of_all_sizes) { led_.emplace_back().of_all_sizes = of_all_sizes; }

  /// Sets the expected time to ask all ranks for one number, until a measurement replaces it.
  void expect_asking(double seconds) { ask_s_ = seconds; }

  /// Sets the account that pays for trials; null: no account.
  void spend_from(account* of_process) { account_ = of_process; }

  /// From the next plan on, calls are checked for at most this share of their time.
  void check(double share) { checked_share_ = share; }
  /// Notes how much longer a call of this arm took because it was checked.
  void note_check(int context, int arm, double seconds);

  /// Starts a context and returns its first plan.
  /// @param chosen the context's policy; null: native without timing, permanently
  /// @param may_check whether results of the context's calls can be checked
  /// @param calls of the communicator
  /// @throws std::bad_alloc without any change
  epoch_plan begin(int context, std::unique_ptr<policy> chosen, bool may_check, std::int64_t calls,
                   double merge_cost_s);

  /// Changes the context's policy. The new policy learns from the latest synchronisation.
  /// @throws std::bad_alloc without any change
  void change_policy(int context, std::unique_ptr<policy> chosen, std::int64_t calls,
                     double merge_cost_s);

  /// Counts an exploring call.
  void note_exploration(int context, int arm) {
    led_context& led = led_[std::size_t(context)];
    ++led.explored_since;
    ++led.record_of(arm).calls;
  }
  /// Counts calls; called before the context's plan is replaced.
  void account_calls(int context, const followed_context& s);

  /// Learns from a synchronisation's report of these samples.
  void learn(std::span<const timed_sample> samples, const merge_report& report,
             std::span<const followed_context> contexts);
  /// Makes plans for the contexts that have learnt something.
  /// @param queue the samples since the synchronisation was posted
  /// @param reply_calls calls until the plans are followed
  void plan(std::span<const followed_context> contexts, std::span<const timed_sample> queue,
            std::int32_t reply_calls, double merge_cost_s);
  /// Answers a synchronisation: counts the calls since the last answer, adds as many new plans to
  /// `reply` as fit, and returns the demand for the next synchronisation.
  /// @param calls of the communicator
  merge_demand answer(std::span<const followed_context> contexts, std::int64_t calls,
                      std::int32_t reply_calls, merge_reply& reply);

  /// Calls of the communicator since the last answer, at least 1.
  double calls_since_answer(std::int64_t calls) const {
    return double(std::max<std::int64_t>(1, calls - answered_at_));
  }

  /// By how much a synchronisation that is spread over calls slows down the calls beside it, in
  /// calls, where ranks share cores.
  double slowdown() const { return sharing_.is_usual() ? slowdown_.of_a_call() : 0; }

  /// The estimated time of a call by the context's policy; empty if the policy has no estimate.
  std::optional<double> expected_s(int context, int arm) const {
    const led_context& led = led_[std::size_t(context)];
    return led.chosen ? led.believed_s(arm) : std::nullopt;
  }
  /// The estimated time of the arm that was predicted to be the fastest; 0 without predictions.
  double least_predicted_s(int context) const {
    const policy* chosen = policy_of(context);
    double log_s = std::numeric_limits<double>::infinity();
    if (chosen)
      for (const arm_prior& a : chosen->arms())
        if (!a.measured_only) log_s = std::min(log_s, a.log_seconds);
    return std::isfinite(log_s) ? std::exp(log_s) : 0;
  }
  /// Null if the context has fallen back to native permanently.
  const policy* policy_of(int context) const { return led_[std::size_t(context)].chosen.get(); }
  /// Arms that ran, in the order of their first call.
  std::vector<arm_record> records(int context, const followed_context& s) const;
  std::span<const double> skews_s(int context) const { return led_[std::size_t(context)].skews_s; }
  /// Sizes of the context's calls, where only synchronisations exchange them; empty if unknown.
  std::optional<size_record> sizes(int context) const {
    const led_context& led = led_[std::size_t(context)];
    return led.sizes ? std::optional(led.sizes->record()) : std::nullopt;
  }
  std::optional<double> core_given_share() const { return sharing_.share(); }
  std::optional<double> cost_share(int context) const {
    const led_context& led = led_[std::size_t(context)];
    if (led.samples_by_cost == 0) return std::nullopt;
    return double(led.samples_by_cost) / double(led.samples);
  }
  const check_costs& checks(int context) const { return led_[std::size_t(context)].checks; }

 private:
  static constexpr std::size_t kept_skews = 64;  // per context
  // In calls of the arm in use: a longer trial was delayed by something else.
  static constexpr double slowest_trial = 30;
  // Calls ask for their size if sizes differ by asking_factor and asking costs at most asking_share
  // of a call. They continue to ask while the weaker limits hold.
  static constexpr double asking_factor = 8, asked_factor = 4;
  static constexpr double asking_share = 0.01, asked_share = 0.02;

  struct merged_call {
    std::size_t context = 0;
    observation seen{};
  };

  struct led_context {
    std::unique_ptr<arm_book> book;  // where `chosen` finds it
    std::unique_ptr<policy> chosen;
    std::optional<epoch_plan> outbox;
    int length = 0;                    // of the last plan
    std::int64_t wanted_at = 0;        // call of the context at which a new plan is wanted
    std::int64_t calls_at_answer = 0;  // when the last merge was answered
    std::int64_t counted_from = 0;     // that, or when it started, by calls of the communicator
    std::int64_t calls_accounted = 0;  // in `records`
    std::int64_t explored_since = 0;   // exploring calls among those not yet accounted
    double rate = 1;                   // calls of the context per call of the communicator
    double last_seconds = 0;           // of its latest timed call, on this rank
    bool has_learnt = false;           // from the merge being consumed
    std::vector<arm_record> records;   // of each arm that has run or is in a plan
    usual_lateness lateness;
    std::vector<double> skews_s;  // the oldest is replaced
    std::size_t next_skew = 0;
    double sampled_s = 0;  // the latest sample, of that call
    std::int64_t sampled_call = -2;
    std::int64_t samples = 0, samples_by_cost = 0;
    double check_s = -1;  // the usual cost of a check; negative: unmeasured
    check_costs checks;
    bool may_check = true;
    int of_all_sizes = -1;              // the context of the calls if they did not ask
    std::unique_ptr<seen_sizes> sizes;  // where only synchronisations exchange sizes
    std::optional<asking_calls> asking;

    // The estimated time of the call before.
    double taken_before_s(const timed_sample& one) const {
      if (sampled_call + 1 == one.call) return sampled_s;
      return believed_s(one.arm_before).value_or(0);
    }
    /// The mean time of a call.
    double mean_call_s(int incumbent) const { return believed_s(incumbent).value_or(last_seconds); }
    // The other ranks wait for the answer, so bad_alloc must not stop it: without memory the arm
    // has no estimate.
    std::optional<double> believed_s(int arm) const {
      try {
        const auto believed = chosen->posterior(arm);
        return believed ? std::optional<double>(believed->mean_s) : std::nullopt;
      } catch (const std::bad_alloc&) {
        return std::nullopt;
      }
    }

    void note_size(double bytes) noexcept {
      try {
        if (!sizes) sizes = std::make_unique<seen_sizes>();
        sizes->add(bytes);
      } catch (const std::bad_alloc&) {  // maybe the next one fits
      }
    }
    void keep_skew(double skew_s) noexcept {
      if (skews_s.size() == kept_skews) {
        skews_s[next_skew++ % kept_skews] = skew_s;
        return;
      }
      try {
        skews_s.push_back(skew_s);
      } catch (const std::bad_alloc&) {  // maybe the next one fits
      }
    }
    /// Records the time of calls since the last synchronisation with samples of their arm, and the
    /// comparison of the arm in use with native. Comparisons of other arms are left out: they
    /// select the arm in use, so they would flatter it.
    void note_times(int in_use) {
      for (const arm_times& seen : book->latest()) {
        arm_record& r = record_of(seen.arm);
        r.sums = seen.sums;
        for (const double seconds : seen.all_s) r.some_s.add(seconds);
        r.latest_s = mean(seen.all_s);
        r.time_s += double(r.calls - r.timed_calls) * r.latest_s;
        r.timed_calls = r.calls;
      }
      if (in_use == native_arm) return;
      const arm_times* const own = book->find_latest(in_use);
      const arm_times* const native = book->find_latest(native_arm);
      if (!own || !native || own->after_itself_s.empty() || native->after_itself_s.empty()) return;
      arm_record& r = record_of(in_use);
      r.meetings.add(own->after_itself_s, native->after_itself_s, r.calls);
    }
    arm_record& record_of(int arm) {
      for (arm_record& r : records)
        if (r.arm == arm) return r;
      records.push_back({.arm = arm});
      return records.back();
    }
    /// Creates the records of all arms in a plan, so that no call allocates memory.
    void name_arms(const epoch_plan& p) {
      for (const exploration& e : p.explore) record_of(e.arm);
      record_of(p.incumbent);
      record_of(native_arm);
    }

    /// A policy that ran out of memory is in an unknown state. The leader drops the policy, and the
    /// context keeps its plan.
    template <class F>
    void ask(const F& question) {
      try {
        question(*chosen);
      } catch (const std::bad_alloc&) {
        chosen.reset();
        has_learnt = false;
        outbox.reset();
      }
    }
  };

  bool shows_cost(const led_context& led, const followed_context& s, const timed_sample& one,
                  const call_times& times) const;
  void learn_call(led_context& led, const followed_context& s, const timed_sample& one,
                  const call_times& times, const std::optional<call_size>& size);
  void note_asking(led_context& of_all_sizes, const call_size& size, double call_s) {
    of_all_sizes.note_size(size.bytes);
    if (!size.asked_s) return;
    of_all_sizes.asking->add(call_s, *size.asked_s);
    ask_s_ = of_all_sizes.asking->asked_s();
  }
  /// Whether the context's calls should ask for their size. Asking makes ranks wait for each other,
  /// so only calls that usually wait anyway ask.
  bool should_ask(const led_context& led, const followed_context& s) const {
    return s.id.waits == waiting::usually_for_all && led.sizes &&
           led.sizes->vary_by(asking_factor) &&
           ask_s_ < asking_share * led.mean_call_s(s.incumbent);
  }
  static bool should_go_on_asking(const led_context& led) {
    return led.asking->are_few() || (led.sizes->vary_by(asked_factor) &&
                                     led.asking->asked_s() < asked_share * led.asking->call_s());
  }
  std::vector<observation> merged_of(std::size_t context) const {
    std::vector<observation> result;
    for (const merged_call& m : merged_)
      if (m.context == context) result.push_back(m.seen);
    return result;
  }

  /// Adds the checks to a plan.
  void add_checks(const led_context& led, const policy& chosen, epoch_plan& p) const;

  account* account_ = nullptr;
  double checked_share_ = 0;
  std::vector<led_context> led_;
  std::vector<merged_call> merged_;  // of the merge being consumed
  merge_slowdown slowdown_;
  core_sharing sharing_;
  double ask_s_ = merge_costs{}.ask_s;
  std::int64_t answered_at_ = 0;  // by calls of the communicator
};

inline epoch_plan leader::begin(int context, std::unique_ptr<policy> chosen, bool may_check,
                                std::int64_t calls, double merge_cost_s) {
  led_context& led = led_[std::size_t(context)];
  led.may_check = may_check;
  epoch_plan p = native_plan();
  if (chosen) {
    led.book = std::make_unique<arm_book>();
    p = chosen->plan({.calls = 0, .merge_cost_s = merge_cost_s, .pending = {}});
    p.asks_size = false;
    led.name_arms(p);
    add_checks(led, *chosen, p);
    led.chosen = std::move(chosen);
  }
  led.length = p.length;
  led.wanted_at = p.length;
  if (answered_at_ > 0) led.counted_from = calls;
  return p;
}

inline void leader::change_policy(int context, std::unique_ptr<policy> chosen, std::int64_t calls,
                                  double merge_cost_s) {
  led_context& led = led_[std::size_t(context)];
  chosen->learn(*led.book);
  epoch_plan p = chosen->plan({.calls = calls, .merge_cost_s = merge_cost_s, .pending = {}});
  p.asks_size = false;
  led.name_arms(p);
  add_checks(led, *chosen, p);
  led.outbox = std::move(p);
  led.chosen = std::move(chosen);
}

inline void leader::note_check(int context, int arm, double seconds) {
  constexpr double weight = 0.2, longest = 4;  // of the usual cost: the rest is a delay
  led_context& led = led_[std::size_t(context)];
  led.record_of(arm).was_checked = true;
  ++led.checks.calls;
  led.checks.seconds += seconds;
  double& usual_s = led.check_s;
  if (usual_s < 0) usual_s = seconds;
  const double spent_s = std::min(seconds, longest * usual_s);
  usual_s += weight * (spent_s - usual_s);
  if (account_) account_->spend_on_checks(spent_s);
}

/// One half of the share is for a call in each stride, the other half for first calls of arms, once
/// their time is known. Native alone is not checked, because there is no arm to change to.
inline void leader::add_checks(const led_context& led, const policy& chosen, epoch_plan& p) const {
  constexpr double longest_stride = 1 << 20;
  constexpr double likely_s = 2e-5, likely_calls = 4;  // of a call; of a check, and likely_s more
  if (checked_share_ <= 0 || !led.may_check || chosen.arms().size() < 2) return;
  const auto believed = chosen.posterior(p.incumbent);
  const double measured_s = led.last_seconds > 0 ? led.last_seconds : likely_s;
  const double call_s = believed ? believed->mean_s : measured_s;
  const double check_s = led.check_s < 0 ? likely_calls * call_s + likely_s : led.check_s;
  const double stride = check_s / (checked_share_ / 2 * call_s);
  p.check_stride = int(std::clamp(std::ceil(stride), 1.0, longest_stride));
  if (!believed && led.last_seconds <= 0 && led.check_s < 0) return;
  const auto is_unchecked = [&](const arm_record& r) {
    return !r.was_checked &&
           (r.arm == p.incumbent ||
            std::ranges::find(p.explore, r.arm, &exploration::arm) != p.explore.end());
  };
  const int unchecked = int(std::ranges::count_if(led.records, is_unchecked));
  p.first_checks =
      account_ ? account_->grant_checks(checked_share_, check_s, unchecked) : unchecked;
}

inline void leader::account_calls(int context, const followed_context& s) {
  led_context& led = led_[std::size_t(context)];
  const std::int64_t calls = s.calls - led.calls_accounted - led.explored_since;
  if (calls > 0 && led.chosen) led.record_of(s.incumbent).calls += calls;
  led.calls_accounted = s.calls;
  led.explored_since = 0;
}

inline std::vector<arm_record> leader::records(int context, const followed_context& s) const {
  const led_context& led = led_[std::size_t(context)];
  std::vector<arm_record> result = led.records;
  std::erase_if(result, [](const arm_record& r) { return r.calls == 0; });
  const std::int64_t calls = s.calls - led.calls_accounted - led.explored_since;
  if (calls <= 0) return result;
  const auto current = std::find_if(result.begin(), result.end(),
                                    [&](const arm_record& r) { return r.arm == s.incumbent; });
  if (current != result.end()) {
    current->calls += calls;
  } else {
    result.push_back({.arm = s.incumbent, .calls = calls});
  }
  return result;
}

inline void leader::learn(std::span<const timed_sample> samples, const merge_report& report,
                          std::span<const followed_context> contexts) {
  sharing_.learn(
      int(std::ranges::count_if(
          samples, [](const timed_sample& one) { return one.seconds > 0 && one.watches_core; })),
      report.gave_core());
  merged_.clear();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const timed_sample& one = samples[i];
    led_context& led = led_[std::size_t(one.context)];
    if (one.seconds > 0) led.last_seconds = one.seconds;
    if (const auto times = report.times(i); times && led.chosen)
      learn_call(led, contexts[std::size_t(one.context)], one, *times, report.size(i));
  }
  for (std::size_t c = 0; c < led_.size(); ++c) {
    if (!led_[c].has_learnt) continue;
    led_[c].ask([&](policy& p) {
      account_calls(int(c), contexts[c]);
      led_[c].book->add(merged_of(c), contexts[c].calls);
      led_[c].note_times(contexts[c].incumbent);
      p.learn(*led_[c].book);
    });
  }
}

/// Whether to learn from the cost rather than from times inside the call. The estimate of the arm
/// in use decides, so that all samples of a context in a synchronisation are measured alike. Clocks
/// of different hosts cannot tell which of two ranks arrived first. Without a root, times inside
/// the call are then better.
inline bool leader::shows_cost(const led_context& led, const followed_context& s,
                               const timed_sample& one, const call_times& times) const {
  constexpr double largest_clock_error = 0.05;  // of a call
  if (!times.on_shared_clock || sharing_.is_usual()) return false;
  const double error_s = times.on_shared_clock->error_s;
  return error_s == 0 ||
         (has_root(one.role.of) && error_s <= largest_clock_error * led.mean_call_s(s.incumbent));
}

inline void leader::learn_call(led_context& led, const followed_context& s, const timed_sample& one,
                               const call_times& times, const std::optional<call_size>& size) {
  if (const auto skew = skew_s(times)) led.keep_skew(*skew);
  const double before_s = led.taken_before_s(one);
  led.lateness.learn(times, before_s);
  const bool skew_is_lateness = !sharing_.is_usual() || led.lateness.is_most();
  const bool by_cost = shows_cost(led, s, one, times);
  const double seconds =
      by_cost ? times.on_shared_clock->cost_s()
              : duration_s(s.id.waits, times, skew_is_lateness, led.lateness.finishing_s(before_s));
  ++led.samples;
  if (by_cost) ++led.samples_by_cost;
  const bool skew_counts = !skew_is_lateness || s.id.waits != waiting::for_all;
  if (!one.explored && skew_counts && s.id.waits != waiting::for_some && !size)
    if (const auto expected_s = led.believed_s(one.arm))
      slowdown_.learn(seconds / *expected_s, one.beside_merge);
  led.sampled_s = seconds;
  led.sampled_call = one.call;
  if (size) {
    led.note_size(size->bytes);
    if (led.of_all_sizes >= 0) note_asking(led_[std::size_t(led.of_all_sizes)], *size, seconds);
  }
  led.has_learnt = true;
  merged_.push_back({std::size_t(one.context),
                     {.arm = one.arm,
                      .seconds = seconds,
                      .after_itself = one.arm == one.arm_before || s.id.waits == waiting::for_all,
                      .bytes = size ? size->bytes : -1}});
  if (one.explored)
    if (const auto incumbent_s = led.believed_s(s.incumbent)) {
      led.record_of(one.arm).exploration_cost_s += seconds - *incumbent_s;
      if (account_)
        account_->spend_on_trials(std::min(seconds, slowest_trial * *incumbent_s) - *incumbent_s);
    }
}

inline void leader::plan(std::span<const followed_context> contexts,
                         std::span<const timed_sample> queue, std::int32_t reply_calls,
                         double merge_cost_s) {
  for (std::size_t c = 0; c < led_.size(); ++c) {
    const followed_context& s = contexts[c];
    led_context& led = led_[c];
    if (s.asks_size && led.chosen && !led.outbox && led.asking && !should_go_on_asking(led)) {
      led.ask([&](policy& p) {
        led.outbox = p.plan({.calls = s.calls, .merge_cost_s = merge_cost_s, .pending = {}});
        led.outbox->asks_size = false;
        led.name_arms(*led.outbox);
        add_checks(led, p, *led.outbox);
      });
      continue;
    }
    if (!led.has_learnt) {
      // The context wanted a plan, but learnt nothing: the other ranks should not wait for its
      // plan.
      if (led.chosen && !led.outbox && led.wanted_at <= s.calls) led.wanted_at = s.calls + s.length;
      continue;
    }
    led.has_learnt = false;
    led.ask([&](policy& p) {
      std::vector<int> pending;
      for (const timed_sample& one : queue)
        if (std::size_t(one.context) == c) pending.push_back(one.arm);
      // Trials of the present plan that still run before the reply.
      const std::int64_t left = s.calls + std::int64_t(reply_calls * led.rate);
      for (std::size_t i = s.next_explore; i < s.num_explore && s.period == 0; ++i)
        if (const exploration e = s.explored(i); s.list_start + e.position < left)
          pending.push_back(e.arm);
      led.outbox = p.plan({.calls = s.calls,
                           .merge_cost_s = merge_cost_s,
                           .reply_calls = 2 * reply_calls * led.rate,
                           .pending = pending,
                           .shares_cores = sharing_.is_usual()});
      led.name_arms(*led.outbox);
      add_checks(led, p, *led.outbox);
      led.outbox->settled = is_likely_best(p, led.outbox->incumbent);
      bool& asks = led.outbox->asks_size;
      asks = asks && (s.asks_size ? should_go_on_asking(led) : should_ask(led, s));
      if (asks && !s.asks_size) led.asking.emplace();
    });
  }
}

inline merge_demand leader::answer(std::span<const followed_context> contexts, std::int64_t calls,
                                   std::int32_t reply_calls, merge_reply& reply) {
  merge_demand demand{.calls = calls_since_answer(calls)};
  answered_at_ = calls;
  for (std::size_t c = 0; c < led_.size(); ++c) {
    const followed_context& s = contexts[c];
    led_context& led = led_[c];
    const double new_calls = double(s.calls - led.calls_at_answer);
    led.calls_at_answer = s.calls;
    led.rate = new_calls / double(std::max<std::int64_t>(1, calls - led.counted_from));
    led.counted_from = calls;
    if (led.outbox && reply.add(*led.outbox, int(c))) {
      led.length = led.outbox->length;
      led.wanted_at = s.calls + std::int64_t(reply_calls * led.rate) + led.length;
      led.outbox.reset();
    }
    if (new_calls == 0 || !led.chosen) continue;
    const double mean_s = led.mean_call_s(s.incumbent);
    demand.calls_s += new_calls * mean_s;
    demand.call_s += led.rate * mean_s;
    demand.longest_call_s = std::max(demand.longest_call_s, mean_s);
    demand.shortest_plan = std::min(demand.shortest_plan, led.length);
    const double remaining = led.outbox ? 0 : double(led.wanted_at - s.calls);
    demand.gap = std::min(demand.gap, remaining / led.rate - reply_calls);
  }
  return demand;
}

}  // namespace railpass::select
