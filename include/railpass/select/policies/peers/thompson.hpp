// SPDX-License-Identifier: BSL-1.0
//
// Thompson sampling: each call takes the arm that is the best in one draw from the belief, so that
// an arm is taken as often as it is believed to be the best.
// Source: Thompson: On the likelihood that one unknown probability exceeds another, Biometrika 25,
// 1933, doi:10.1093/biomet/25.3-4.285.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(thompson, "takes each arm as often as the arm is likely to be the best")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_THOMPSON)
#define RAILPASS_SELECT_POLICIES_PEERS_THOMPSON

#include "railpass/select/belief/belief_policy.hpp"

namespace railpass::select {

class thompson_policy final : public belief_policy {
 public:
  explicit thompson_policy(policy_input input) : belief_policy(std::move(input)) {
    probability_.assign(std::size_t(num_active()), 0);
    probability_[std::size_t(incumbent())] = 1;
  }

  epoch_plan plan(const planning_input& now) override {
    choose_incumbent();
    const double length = std::max(early_length(), now.calls > 0 ? longest_length(now) : 0.0);
    // After the epoch the drawn arms are repeated until a merge brings new times.
    constexpr int draws = 256;
    factorise();
    std::fill(probability_.begin(), probability_.end(), 0.0);
    epoch_plan p{.incumbent = number_of(incumbent()),
                 .length = int(std::min(length, double(1 << 30))),
                 .timed_stride = stride_for(length),
                 .period = draws};
    for (int i = 0; i < draws; ++i) {
      const int a = draw();
      probability_[std::size_t(a)] += 1.0 / draws;
      if (a == incumbent()) continue;
      if (p.explore.size() == epoch_plan::max_explore) {
        p.period =
            std::min(p.period, i);  // the list is full; later draws count for probabilities alone
      } else {
        p.explore.push_back({i, number_of(a)});
      }
    }
    return p;
  }

  std::vector<double> probabilities() const override { return by_arm(probability_); }

 private:
  /// Cholesky factor of the covariances, lower triangle.
  void factorise() {
    factor_ = beliefs().covariances();
    for (int i = 0; i < num_active(); ++i)
      for (int j = 0; j <= i; ++j) {
        double sum = factor_(i, j);
        for (int k = 0; k < j; ++k) sum -= factor_(i, k) * factor_(j, k);
        factor_(i, j) = i == j ? std::sqrt(std::max(1e-12, sum)) : sum / factor_(j, j);
      }
  }

  int draw() {
    std::vector<double>& z = normals_;
    z.resize(std::size_t(num_active()));
    for (double& x : z) x = random().normal();
    int best = 0;
    double lowest = 0;
    for (int a = 0; a < num_active(); ++a) {
      double value = beliefs().cost(a);
      for (int k = 0; k <= a; ++k) value += factor_(a, k) * z[std::size_t(k)];
      if (a == 0 || value < lowest) {
        best = a;
        lowest = value;
      }
    }
    return best;
  }

  covariance factor_;
  std::vector<double> normals_;
  std::vector<double> probability_;  // by active index
};

}  // namespace railpass::select

#endif
