// SPDX-License-Identifier: BSL-1.0
//
// 2^k factorial design, as in ADCL: the corners of the grid of attributes (first and last value of
// each) are tried; an attribute whose effect is less than half of the largest one keeps the value
// of the best corner; what is left is tried by brute force. Where a corner is no arm, the nearest
// one stands for it. Trials and score are those of adcl_brute_force. Source: Jain: The Art of
// Computer Systems Performance Analysis, Wiley, 1991, chapter 17.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(factorial,
                     "tries extreme values first, then all arms that differ in what matters, as "
                     "ADCL; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_FACTORIAL)
#define RAILPASS_SELECT_POLICIES_PEERS_FACTORIAL

#include "railpass/select/policies/peers/attribute_grid.hpp"
#include "railpass/select/policies/peers/trial_policy.hpp"

namespace railpass::select {

class factorial_policy final : public trial_policy {
 public:
  explicit factorial_policy(policy_input input)
      : trial_policy(std::move(input.priors)), grid_(arms()) {
    for (std::size_t x = 0; x < grid_.num_attributes(); ++x)
      if (grid_.levels(x) > 1) factors_.push_back(x);
    if (factors_.size() > most_factors)
      throw error("policy factorial: expected at most " + std::to_string(most_factors) +
                  " attributes with several values, found " + std::to_string(factors_.size()));
    for (unsigned corner = 0; corner < 1U << factors_.size(); ++corner) {
      attribute_grid::point p(grid_.num_attributes(), 0);
      for (std::size_t i = 0; i < factors_.size(); ++i)
        if (corner >> i & 1U) p[factors_[i]] = grid_.levels(factors_[i]) - 1;
      const int a = grid_.nearest(p, -1, [](std::size_t) { return true; });
      corners_.push_back(std::size_t(a));
      want(corners_.back(), adcl_trials);
    }
  }

  std::string reason() const override {
    return "the smallest filtered mean of the corners and of the arms that differ in what matters";
  }

 private:
  static constexpr std::size_t most_factors = 10;
  static constexpr double least_effect = 0.5;  // of the largest sum of squares

  void decide(std::int64_t) override {
    const auto score = [this](std::size_t a) { return adcl_score(samples(a)); };
    if (stage_ == 2) return;
    if (stage_++ == 0) {
      std::size_t best = corners_.front();
      for (const std::size_t a : corners_)
        if (score(a) < score(best)) best = a;
      // The effect of a set of factors: the scores, each with the product of the factors' signs.
      double largest = 0;
      std::vector<double> squares(corners_.size());
      for (unsigned set = 1; set < corners_.size(); ++set) {
        double effect = 0;
        for (unsigned corner = 0; corner < corners_.size(); ++corner) {
          const bool negative = __builtin_popcount(set & ~corner) % 2 != 0;
          effect += (negative ? -1 : 1) * score(corners_[corner]);
        }
        squares[set] = effect * effect;
        largest = std::max(largest, squares[set]);
      }
      for (std::size_t a = 0; a < num_arms(); ++a) {
        bool left = true;
        for (std::size_t i = 0; i < factors_.size(); ++i)
          if (squares[std::size_t(1) << i] < least_effect * largest)
            left = left && grid_.at(a)[factors_[i]] == grid_.at(best)[factors_[i]];
        if (left) want(a, adcl_trials);
      }
    }
    choose(smallest(score));
  }

  attribute_grid grid_;
  std::vector<std::size_t> factors_;  // attributes with more than one value
  std::vector<std::size_t> corners_;  // bit i of the position: factor i has its last value
  int stage_ = 0;                     // 1: the corners are measured, 2: the rest, too
};

}  // namespace railpass::select

#endif
