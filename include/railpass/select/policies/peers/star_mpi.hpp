// SPDX-License-Identifier: BSL-1.0
//
// STAR-MPI's measure and monitor: every arm twice, its score the mean of the smaller half (the
// better one of two) and one more; then the best runs, watched in windows that double. If the mean
// of a window and the mean of its last calls both exceed the second best arm's score by 10 %, that
// one takes over with its old score. Nothing else is tried again.
// Source: Faraj, Yuan, Lowenthal: STAR-MPI: self tuned adaptive routines for MPI collective
// operations, ICS 2006, doi:10.1145/1183401.1183431.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(star_mpi,
                     "tries every arm twice, then watches the fastest and changes to the second "
                     "if the fastest slows down, as STAR-MPI; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_STAR_MPI)
#define RAILPASS_SELECT_POLICIES_PEERS_STAR_MPI

#include "railpass/select/policies/peers/trial_policy.hpp"

namespace railpass::select {

class star_mpi_policy final : public trial_policy {
 public:
  explicit star_mpi_policy(policy_input input)
      : trial_policy(std::move(input.priors)), scores_(num_arms()) {
    want_all(trials);
  }

  std::string reason() const override {
    return "the fastest of two trials each, or the next arm after the fastest slowed down";
  }

 private:
  static constexpr std::size_t trials = 2, discarded = 2;
  static constexpr int first_factor = 4;
  static constexpr double slower = 1.1;

  std::size_t window() const { return std::size_t(factor_) * trials; }

  void decide(std::int64_t) override {
    if (!std::exchange(tried_, true)) {
      for (std::size_t a = 0; a < num_arms(); ++a) {
        std::vector<double> sorted = samples(a);
        std::sort(sorted.begin(), sorted.end());
        const std::size_t kept = sorted.size() / 2 + 1;
        scores_[a] = std::accumulate(sorted.begin(), sorted.begin() + std::ptrdiff_t(kept), 0.0) /
                     double(kept);
      }
      choose(std::size_t(std::min_element(scores_.begin(), scores_.end()) - scores_.begin()));
      watch();
      return;
    }
    const std::vector<double>& seen = samples(incumbent());
    const auto mean_of = [&](std::size_t first, std::size_t last) {
      return std::accumulate(seen.begin() + std::ptrdiff_t(first),
                             seen.begin() + std::ptrdiff_t(last), 0.0) /
             double(last - first);
    };
    if (seen.size() < discarded + window()) return;  // watching
    const std::size_t end = discarded + window();
    const double whole = mean_of(discarded, end), recent = mean_of(end - trials, end);
    const std::size_t next = second();
    const bool slow = whole >= slower * scores_[next];
    if (slow) scores_[incumbent()] = recent;
    if (slow && recent >= slower * scores_[next]) {
      choose(next);
      factor_ = first_factor;
    } else if (!slow) {
      factor_ = std::min(2 * factor_, 1 << 20);  // ever less watching
    }
    watch();
  }

  void settle(std::int64_t, epoch_plan& p) const override {
    p.length = int(discarded + window() - std::min(samples(incumbent()).size(), window()));
    p.timed_stride = 1;
  }

  void watch() {
    want_all(0);
    forget(incumbent());
  }
  std::size_t second() const {
    std::size_t best = incumbent();
    for (std::size_t a = 0; a < num_arms(); ++a)
      if (a != incumbent() && (best == incumbent() || scores_[a] < scores_[best])) best = a;
    return best;
  }

  std::vector<double> scores_;
  bool tried_ = false;
  int factor_ = first_factor;
};

}  // namespace railpass::select

#endif
