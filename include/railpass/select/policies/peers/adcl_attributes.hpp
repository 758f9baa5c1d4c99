// SPDX-License-Identifier: BSL-1.0
//
// ADCL's search attribute by attribute: the policy tries the values of one attribute
// (attributes.hpp) with all other attributes fixed, keeps the best value, and continues with the
// next attribute. A value that wins at two different settings of the other attributes is final:
// arms without it are not tried any more. If a combination is no arm, the nearest arm replaces it.
// Good if attributes do not interact. Trials and score are those of adcl_brute_force. Source:
// Gabriel, Feki, Benkert, Resch: Towards performance portability through runtime adaptation for
// high-performance computing applications, Concurrency and Computation 22, 2010,
// doi:10.1002/cpe.1586.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(
    adcl_attributes,
    "searches attribute by attribute, then keeps the fastest arm, as ADCL; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_ADCL_ATTRIBUTES)
#define RAILPASS_SELECT_POLICIES_PEERS_ADCL_ATTRIBUTES

#include "railpass/select/policies/peers/attribute_grid.hpp"
#include "railpass/select/policies/peers/trial_policy.hpp"

namespace railpass::select {

class adcl_attributes_policy final : public trial_policy {
 public:
  explicit adcl_attributes_policy(policy_input input)
      : trial_policy(std::move(input.priors)),
        grid_(arms()),
        base_(grid_.at(0)),
        hypotheses_(grid_.num_attributes()) {
    sweep();
  }

  std::string reason() const override {
    return "the smallest filtered mean of the arms tried attribute by attribute";
  }

 private:
  static constexpr int required_confidence = 2;

  struct hypothesis {
    int value = -1;
    int confidence = 0;
    bool fixed = false;
  };

  bool allowed(std::size_t arm) const {
    for (std::size_t x = 0; x < grid_.num_attributes(); ++x)
      if (hypotheses_[x].fixed && grid_.at(arm)[x] != hypotheses_[x].value) return false;
    return true;
  }

  /// Wants the arms that differ from the base in the active attribute.
  void sweep() {
    swept_.clear();
    const bool is_new_before = found_new_;
    found_new_ = false;
    for (int value = 0; value < grid_.levels(active_); ++value) {
      attribute_grid::point p = base_;
      p[active_] = value;
      const int a = grid_.nearest(p, int(active_), [this](std::size_t i) { return allowed(i); });
      if (a < 0) continue;
      swept_.push_back(std::size_t(a));
      if (samples(std::size_t(a)).size() < adcl_trials) found_new_ = true;
      want(std::size_t(a), adcl_trials);
    }
    tested_ = found_new_;
    found_new_ = found_new_ || is_new_before;
  }

  void decide(std::int64_t) override {
    const auto score = [this](std::size_t a) { return adcl_score(samples(a)); };
    while (!done_) {
      std::size_t best = swept_.front();
      for (const std::size_t a : swept_)
        if (score(a) < score(best)) best = a;
      base_ = grid_.at(best);
      hypothesis& h = hypotheses_[active_];
      if (h.value != base_[active_]) h = {.value = base_[active_]};
      if (tested_ && ++h.confidence >= required_confidence) h.fixed = true;
      choose(smallest(score));
      if (++active_ == grid_.num_attributes()) {
        active_ = 0;
        done_ = !found_new_;  // a whole pass without a new arm
        found_new_ = false;
        if (done_) return;
      }
      sweep();
      if (tested_) return;
    }
  }

  attribute_grid grid_;
  attribute_grid::point base_;
  std::vector<hypothesis> hypotheses_;  // by attribute
  std::vector<std::size_t> swept_;
  std::size_t active_ = 0;
  bool tested_ = false;     // the current sweep measures something new
  bool found_new_ = false;  // a sweep of this pass measured something new
  bool done_ = false;
};

}  // namespace railpass::select

#endif
