// SPDX-License-Identifier: BSL-1.0
//
// Successive halving: a race of all combinations, or of random combinations that fit into the time.
#ifdef RAILPASS_LIST_SEARCH
RAILPASS_LIST_SEARCH(halving, "all combinations once, then the better half again, and so on")
#elif !defined(RAILPASS_TUNE_SEARCHES_HALVING)
#define RAILPASS_TUNE_SEARCHES_HALVING

#include "lib/tune/searches/race.hpp"

namespace railpass::internal::tune {

class halving_search final : public search {
 public:
  std::vector<combination> next(const search_view& view) override {
    if (!begun_) {
      begun_ = true;
      race_ = race(
          all_or_some(view, std::size_t(std::clamp<std::uint64_t>(view.runs_left / 2, 8, 2048))));
    }
    return race_.next(view);
  }

  double expected_runs(const search_view& view) const override {
    return 2.2 * count_up_to(view, 2048);
  }

 private:
  race race_;
  bool begun_ = false;
};

}  // namespace railpass::internal::tune

#endif
