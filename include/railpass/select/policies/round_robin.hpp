// SPDX-License-Identifier: BSL-1.0
//
// Brute force: every arm in turn, three times, however slow it is; then the one with the smallest
// mean for good. What other autotuners do, for comparison (Gabriel, Feki, Benkert, Chaarawi: The
// Abstract Data and Communication Library, Journal of Algorithms & Computational Technology, 2008).
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(round_robin,
                     "tries every arm three times in turn, then keeps the fastest; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_ROUND_ROBIN)
#define RAILPASS_SELECT_POLICIES_ROUND_ROBIN

#include "railpass/select/tally.hpp"

namespace railpass::select {

class round_robin_policy final : public policy {
 public:
  static constexpr int trials = 3;

  explicit round_robin_policy(policy_input input) : tally_(std::move(input.priors)) { update(); }

  void learn(std::span<const observation> merged, std::int64_t) override {
    tally_.add(merged);
    update();
  }

  epoch_plan plan(const planning_input& now) override {
    std::vector<int> tried;  // or about to be
    for (std::size_t a = 0; a < tally_.arms().size(); ++a) tried.push_back(tally_.samples(a));
    for (const int arm : now.pending)
      for (std::size_t a = 0; a < tried.size(); ++a) tried[a] += tally_.arms()[a].arm == arm;
    epoch_plan p{.incumbent = tally_.arms()[best_].arm};
    for (int round = 0; round < trials; ++round)
      for (std::size_t a = 0; a < tried.size(); ++a)
        if (tried[a] <= round && p.explore.size() < batch) {
          p.explore.push_back({int(p.explore.size()), tally_.arms()[a].arm});
          ++tried[a];
        }
    std::fill(probability_.begin(), probability_.end(), 0.0);
    if (p.explore.empty()) {
      p.length = int(std::clamp<std::int64_t>(now.calls, 64, 1 << 30));
      p.timed_stride = 64;
      probability_[best_] = 1;
    } else {
      p.length = int(p.explore.size());
      for (const exploration& e : p.explore)
        for (std::size_t a = 0; a < probability_.size(); ++a)
          if (tally_.arms()[a].arm == e.arm) probability_[a] += 1.0 / p.length;
    }
    return p;
  }

  std::span<const arm_prior> arms() const override { return tally_.arms(); }
  std::vector<double> probabilities() const override { return probability_; }
  std::optional<arm_posterior> posterior(int arm) const override { return tally_.posterior(arm); }
  std::string reason() const override {
    return "the smallest mean after every arm was tried " + std::to_string(trials) + " times";
  }

 private:
  static constexpr std::size_t batch = 12;  // explored calls per merge, so that none is dropped

  void update() {
    if (probability_.empty()) {
      probability_.assign(tally_.arms().size(), 0);
      for (std::size_t a = 0; a < tally_.arms().size(); ++a)
        if (tally_.arms()[a].native) best_ = a;
      probability_[best_] = 1;
    }
    for (std::size_t a = 0; a < tally_.arms().size(); ++a)
      if (tally_.sample_mean(a) < tally_.sample_mean(best_)) best_ = a;
  }

  tally tally_;
  std::size_t best_ = 0;
  std::vector<double> probability_;
};

}  // namespace railpass::select

#endif
