// SPDX-License-Identifier: BSL-1.0
//
// The policy of a context whose call sizes are only known from synchronisations. It has a part for
// each size, with a policy of its own that is predicted and taught for calls of that size. No rank
// knows a call's size when the call starts, so all calls run one arm: the arm with the least total
// time over all sizes, weighted by frequency.
#pragma once

#include "railpass/base/units.hpp"
#include "railpass/select/policy/policy.hpp"
#include "railpass/select/policy/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass::select {

/// The distance of two sizes in octaves; an empty call counts as one byte.
inline double octaves_between(double a, double b) {
  return std::abs(std::log2(std::max(a, 1.0) / std::max(b, 1.0)));
}

class sized_policy final : public policy {
 public:
  struct part {
    double bytes = 0;
    std::unique_ptr<policy> its{};
    int incumbent = 0;  // of the part's last plan
    double weight = 0;  // recent calls
    double sum = 0;     // of their bytes
    double due = 0;     // number of plans for other parts in the meantime
    std::vector<observation> merged{};
    std::unique_ptr<arm_book> book = std::make_unique<arm_book>();  // of calls of about this size
  };
  /// Creates a part's policy for calls of `bytes`; `nearest` has learnt from other sizes.
  using maker = std::function<std::unique_ptr<policy>(double bytes, const part& nearest)>;

  /// @param first the policy for calls of `guessed_bytes`, until sizes are known
  /// @param min_bytes calls of a smaller mean size run native
  sized_policy(std::unique_ptr<policy> first, double guessed_bytes, double min_bytes, maker make)
      : make_(std::move(make)), min_bytes_(min_bytes) {
    parts_.reserve(most_parts);
    parts_.push_back({.bytes = guessed_bytes, .its = std::move(first)});
    for (const arm_prior& a : arms())
      if (a.native) native_ = a.arm;
    parts_.front().incumbent = incumbent_ = native_;
  }

  void learn(const arm_book& book) override {
    for (const observation& o : book.merged()) {
      for (part& p : parts_) p.weight *= kept, p.sum *= kept;
      part& mine = o.bytes < 0 ? parts_.front() : part_of(o.bytes);
      mine.merged.push_back(o);
      if (o.bytes >= 0) ++mine.weight, mine.sum += o.bytes;
    }
    for (part& p : parts_) {
      if (p.merged.empty()) continue;
      p.book->add(p.merged, book.calls());
      p.its->learn(*p.book);
      p.merged.clear();
    }
  }

  epoch_plan plan(const planning_input& now) override {
    if (mean_bytes() < min_bytes_) return native_for_now(now.calls);
    part& due = next_due();
    epoch_plan p = due.its->plan(now);
    due.incumbent = p.incumbent;
    incumbent_ = cheapest();
    if (!has_several_sizes()) return p;
    p.asks_size = true;
    mix_calls(p);
    p.incumbent = incumbent_;
    return p;
  }

  std::span<const arm_prior> arms() const override { return parts_.front().its->arms(); }

  std::vector<double> probabilities() const override {
    const part& last = parts_[last_];
    const std::span<const arm_prior> its = last.its->arms();
    const std::vector<double> of_its = last.its->probabilities();
    // A part without a plan has no probabilities, because calls are native.
    const bool is_last =
        incumbent_ == last.incumbent && mean_bytes() >= min_bytes_ && of_its.size() == its.size();
    std::vector<double> result;
    for (const arm_prior& a : arms()) {
      // Other arms may have been eligible when the part was created.
      const auto same = std::ranges::find(its, a.arm, &arm_prior::arm);
      if (!is_last)
        result.push_back(a.arm == incumbent_ ? 1 : 0);
      else
        result.push_back(same == its.end() ? 0 : of_its[std::size_t(same - its.begin())]);
    }
    return result;
  }

  /// For a call of any size, weighted by recent frequency.
  std::optional<time_estimate> posterior(int arm) const override {
    double calls = 0, sum = 0, squares = 0;
    for (const part& p : parts_) {
      if (!counts(p)) continue;
      const auto its = p.its->posterior(arm);
      if (!its) return std::nullopt;
      calls += weight_of(p);
      sum += weight_of(p) * its->mean_s;
      squares += std::pow(weight_of(p) * its->mean_s * its->spread, 2);
    }
    return time_estimate{sum / calls, std::sqrt(squares) / sum};
  }

  std::string reason() const override {
    if (mean_bytes() < min_bytes_)
      return "the mean size, " + format_about_bytes(mean_bytes()) +
             ", is below the setting min_bytes";
    const part& last = parts_[last_];
    if (!has_several_sizes()) return last.its->reason();
    return "one arm for calls of several sizes, whose times add up to the least; of calls of " +
           format_about_bytes(last.bytes) + ": " + last.its->reason();
  }

 private:
  static constexpr std::size_t most_parts = 6;
  static constexpr double one_size = 2;    // sizes of a part differ by less than this factor
  static constexpr double kept = 0.98;     // of a part's weight, per reported call
  static constexpr double rare = 0.01;     // of all weights: smaller parts do not count
  static constexpr double clearly = 0.98;  // another arm's time must be below this share

  double all_weights() const {
    double sum = 0;
    for (const part& p : parts_) sum += p.weight;
    return sum;
  }
  /// Before the first report only the guessed part counts.
  double weight_of(const part& p) const {
    return all_weights() > 0 ? p.weight : &p == &parts_.front() ? 1 : 0;
  }
  bool counts(const part& p) const { return weight_of(p) > rare * all_weights(); }
  bool has_several_sizes() const {
    return std::ranges::count_if(parts_, [this](const part& p) { return counts(p); }) > 1;
  }
  double mean_bytes() const {
    double sum = 0;
    for (const part& p : parts_) sum += p.sum;
    return all_weights() > 0 ? sum / all_weights() : parts_.front().bytes;
  }

  /// Returns the part for calls of `bytes`. A new part replaces an unused part, if there is one.
  /// With too many sizes, the result is the nearest part.
  part& part_of(double bytes) {
    const auto nearest = std::ranges::min_element(
        parts_, {}, [&](const part& p) { return octaves_between(p.bytes, bytes); });
    if (octaves_between(nearest->bytes, bytes) < std::log2(one_size)) return *nearest;
    const auto unused = std::ranges::find_if(
        parts_, [this](const part& p) { return p.weight <= rare * all_weights(); });
    if (unused == parts_.end() && parts_.size() == most_parts) return *nearest;
    part made{.bytes = bytes, .its = make_(bytes, *nearest), .incumbent = native_};
    if (unused == parts_.end()) return parts_.emplace_back(std::move(made));
    made.merged = std::move(unused->merged);  // of an earlier context
    return *unused = std::move(made);
  }

  /// The time of a part's calls, relative to the other parts.
  double time_of(const part& p) const {
    const auto taken = p.its->posterior(incumbent_);
    return weight_of(p) * (taken ? taken->mean_s : 0);
  }
  /// The part whose turn it is: a part's turns are proportional to the time of its calls.
  part& next_due() {
    double sum = 0;
    for (const part& p : parts_) sum += time_of(p);
    for (part& p : parts_)
      if (sum > 0) p.due += time_of(p) / sum;
    const auto due = std::ranges::max_element(
        parts_, {}, [this](const part& p) { return counts(p) ? p.due : -HUGE_VAL; });
    due->due -= 1;
    last_ = std::size_t(due - parts_.begin());
    return *due;
  }

  /// The cheapest of native and the parts' incumbents. The arm in use stays until another arm is
  /// clearly better.
  int cheapest() const {
    std::vector<int> wanted;
    for (const part& p : parts_)
      if (counts(p)) wanted.push_back(p.incumbent);
    if (std::ranges::all_of(wanted, [&](int arm) { return arm == wanted.front(); }))
      return wanted.front();
    wanted.push_back(native_);
    const auto cost_s = [this](int arm) {
      const auto taken = posterior(arm);
      return taken ? taken->mean_s : HUGE_VAL;
    };
    const int best = *std::ranges::min_element(wanted, {}, cost_s);
    return cost_s(best) < clearly * cost_s(incumbent_) ? best : incumbent_;
  }

  /// Shuffles the first calls of a plan, because sizes may alternate in step with the plan. The
  /// calls of the part's incumbent are included, because another arm may be in use.
  void mix_calls(epoch_plan& p) {
    constexpr int most = 256;
    const int last = p.explore.empty() ? 0 : p.explore.back().position;
    if (last >= most) return;
    std::vector<int> calls(std::size_t(last + 1), p.incumbent);
    for (const exploration& e : p.explore) calls[std::size_t(e.position)] = e.arm;
    random_.shuffle(calls);
    p.explore.clear();
    for (int i = 0; i <= last && p.explore.size() < epoch_plan::max_explore; ++i)
      if (calls[std::size_t(i)] != incumbent_)
        p.explore.push_back({.position = i, .arm = calls[std::size_t(i)]});
    p.period = std::max(p.period, p.period > 0 ? last + 1 : 0);
  }

  /// A native plan that ends, because sizes are seen in timed calls only.
  epoch_plan native_for_now(std::int64_t calls) {
    constexpr std::int64_t shortest = 16, longest = 4096;
    const auto length = int(std::clamp(calls, shortest, longest));
    incumbent_ = native_;
    return {.incumbent = native_, .length = length, .timed_stride = length / int(shortest)};
  }

  maker make_;
  double min_bytes_;
  std::vector<part> parts_;
  int native_ = 0;
  int incumbent_ = 0;
  random_stream random_{1};
  std::size_t last_ = 0;  // the part of the last plan
};

}  // namespace railpass::select
