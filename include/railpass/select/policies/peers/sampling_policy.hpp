// SPDX-License-Identifier: BSL-1.0
//
// What the policies have in common that decide every call by itself from the arms' means: the calls
// of an epoch are decided in advance, and repeated until something new is known.
#pragma once

#include "railpass/select/policy/random.hpp"
#include "railpass/select/policy/tally.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace railpass::select {

class sampling_policy : public policy {
 public:
  explicit sampling_policy(policy_input& input)
      : tally_(std::move(input.priors)),
        random_(input.seed),
        probability_(tally_.arms().size(), 1.0 / double(tally_.arms().size())) {}

  void learn(const arm_book& book) override {
    tally_.read(book);
    ++epoch_;
    update();
  }

  epoch_plan plan(const planning_input& now) override {
    begin(now);
    const std::size_t best = likeliest();
    epoch_plan p{.incumbent = tally_.arms()[best].arm,
                 .length = int(std::min(2 * std::pow(1.25, std::min(64, epoch_)),
                                        std::max(64.0, double(now.calls) / 32))),
                 .timed_stride = 1};
    p.period = 4 * p.length;
    for (int i = 0; i < p.period; ++i) {
      const std::size_t a = choice();
      if (a == best) continue;
      if (p.explore.size() == epoch_plan::max_explore) {
        p.period = i;
        break;
      }
      p.explore.push_back({i, tally_.arms()[a].arm});
    }
    p.timed_stride = std::max(1, std::min(64, p.length / 16));
    return p;
  }

  std::span<const arm_prior> arms() const override { return tally_.arms(); }
  std::vector<double> probabilities() const override { return probability_; }
  std::optional<time_estimate> posterior(int arm) const override { return tally_.posterior(arm); }

 protected:
  /// New samples are in the tally: sets the probabilities.
  virtual void update() = 0;
  /// A plan is being made; choice() follows once per call.
  virtual void begin(const planning_input&) {}
  virtual std::size_t choice() { return draw(); }

  const tally& sums() const { return tally_; }
  std::vector<double>& probability() { return probability_; }
  std::size_t likeliest() const {
    return std::size_t(std::max_element(probability_.begin(), probability_.end()) -
                       probability_.begin());
  }

 private:
  std::size_t draw() {
    double u = random_.uniform();
    for (std::size_t a = 0; a + 1 < probability_.size(); ++a) {
      u -= probability_[a];
      if (u < 0) return a;
    }
    return probability_.size() - 1;
  }

  tally tally_;
  random_stream random_;
  std::vector<double> probability_;  // by position in arms()
  int epoch_ = 0;
};

}  // namespace railpass::select
