// SPDX-License-Identifier: BSL-1.0
//
// Probability matching: every call takes arm a with probability proportional to mean_a^-g. The
// model counts as one pseudo-observation of each arm, scaled to what was measured.
// Source: Nishtala, Patel, Sanghavi, Chakrabarti: Automatic tuning of collective communications in
// MPI (PASS), poster, University of California at Berkeley; it gives no formula, the power is ours.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(pass,
                     "takes each arm with a probability proportional to its mean time to the power "
                     "of -pass_exponent")
#elif !defined(RAILPASS_SELECT_POLICIES_PASS)
#define RAILPASS_SELECT_POLICIES_PASS

#include "railpass/select/random.hpp"
#include "railpass/select/tally.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace railpass::select {

class pass_policy final : public policy {
 public:
  explicit pass_policy(policy_input input)
      : tally_(std::move(input.priors)), random_(input.seed), exponent_(input.pass_exponent) {
    if (!(exponent_ > 0 && std::isfinite(exponent_)))
      throw error("policy pass: pass_exponent: expected a positive number");
    update();
  }

  void learn(std::span<const observation> merged, std::int64_t) override {
    tally_.add(merged);
    ++epoch_;
    update();
  }

  epoch_plan plan(const planning_input& now) override {
    const auto likeliest = std::max_element(probability_.begin(), probability_.end());
    const auto best = std::size_t(likeliest - probability_.begin());
    epoch_plan p{.incumbent = tally_.arms()[best].arm,
                 .length = int(std::min(2 * std::pow(1.25, std::min(64, epoch_)),
                                        std::max(64.0, double(now.calls) / 32))),
                 .timed_stride = 1};
    p.period = 4 * p.length;
    for (int i = 0; i < p.period; ++i) {
      const std::size_t a = draw();
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
  std::optional<arm_posterior> posterior(int arm) const override { return tally_.posterior(arm); }
  std::string reason() const override {
    const double highest = *std::max_element(probability_.begin(), probability_.end());
    char text[160];
    std::snprintf(
        text, sizeof text,
        "every arm is taken with a probability proportional to mean^-%g; this one has the "
        "highest, %.1f %%",
        exponent_, 100 * highest);
    return text;
  }

 private:
  void update() {
    const std::vector<double> means = tally_.means();
    const double best = *std::min_element(means.begin(), means.end());
    double sum = 0;
    probability_.clear();
    for (const double m : means) sum += probability_.emplace_back(std::pow(best / m, exponent_));
    for (double& p : probability_) p /= sum;
  }

  std::size_t draw() {
    double u = random_.uniform();
    for (std::size_t a = 0; a + 1 < probability_.size(); ++a)
      if ((u -= probability_[a]) < 0) return a;
    return probability_.size() - 1;
  }

  tally tally_;
  random_stream random_;
  double exponent_;
  std::vector<double> probability_;
  int epoch_ = 0;
};

}  // namespace railpass::select

#endif
