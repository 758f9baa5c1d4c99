// SPDX-License-Identifier: BSL-1.0
//
// UCB1: the arm with the smallest optimistic time, mean - sqrt(2 ln t / n), in units of the range
// of the means; every arm is tried once first. No model is asked.
// Source: Auer, Cesa-Bianchi, Fischer: Finite-time analysis of the multiarmed bandit problem,
// Machine Learning 47, 2002, doi:10.1023/A:1013689704352.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(
    ucb, "takes the arm with the smallest optimistic time, each once first; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_UCB)
#define RAILPASS_SELECT_POLICIES_PEERS_UCB

#include "railpass/select/policies/peers/sampling_policy.hpp"

#include <limits>
#include <string>

namespace railpass::select {

class ucb_policy final : public sampling_policy {
 public:
  explicit ucb_policy(policy_input input) : sampling_policy(input) {}

  std::string reason() const override { return "most of the calls of the last plan take this arm"; }

 private:
  void update() override {}

  /// The choices of the coming calls, if every arm takes its mean: their shares are the
  /// probabilities, and choice() then repeats them.
  void begin(const planning_input& now) override {
    const std::size_t k = sums().arms().size();
    std::vector<double> tries(k);
    double lowest = std::numeric_limits<double>::infinity(), highest = 0;
    for (std::size_t a = 0; a < k; ++a) {
      tries[a] = sums().samples(a);
      if (tries[a] == 0) continue;
      lowest = std::min(lowest, sums().sample_mean(a));
      highest = std::max(highest, sums().sample_mean(a));
    }
    for (const int arm : now.pending)
      for (std::size_t a = 0; a < k; ++a) tries[a] += sums().arms()[a].arm == arm;
    double t = 0;
    for (const double n : tries) t += n;
    std::fill(probability().begin(), probability().end(), 0.0);
    order_.clear();
    next_ = 0;
    for (std::size_t i = 0; i < coming; ++i) {
      std::size_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t a = 0; a < k; ++a) {
        const double range = highest > lowest ? highest - lowest : 1;
        const double cost = sums().samples(a) > 0 ? (sums().sample_mean(a) - lowest) / range : 1;
        const double optimistic = tries[a] > 0 ? cost - std::sqrt(2 * std::log(t + 1) / tries[a])
                                               : -std::numeric_limits<double>::max();
        if (optimistic >= least) continue;
        best = a;
        least = optimistic;
      }
      ++tries[best];
      ++t;
      order_.push_back(best);
      probability()[best] += 1.0 / double(coming);
    }
  }
  std::size_t choice() override { return order_[next_++ % order_.size()]; }

  static constexpr std::size_t coming = 48;  // as many as a plan can hold
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
};

}  // namespace railpass::select

#endif
