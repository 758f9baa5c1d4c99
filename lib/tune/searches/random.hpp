// SPDX-License-Identifier: BSL-1.0
//
// A race of random combinations. 59 of them hold one of the best twentieth with 95 % probability.
#ifdef RAILPASS_LIST_SEARCH
RAILPASS_LIST_SEARCH(random, "59 random combinations, most likely with one of the best 5 %")
#elif !defined(RAILPASS_TUNE_SEARCHES_RANDOM)
#define RAILPASS_TUNE_SEARCHES_RANDOM

#include "lib/tune/searches/race.hpp"

namespace railpass::internal::tune {

class random_search final : public search {
 public:
  std::vector<combination> next(const search_view& view) override {
    if (!begun_) {
      begun_ = true;
      race_ = race(all_or_some(view, 59));
    }
    return race_.next(view);
  }

  double expected_runs(const search_view& view) const override {
    return 2.2 * count_up_to(view, 59);
  }

 private:
  race race_;
  bool begun_ = false;
};

}  // namespace railpass::internal::tune

#endif
