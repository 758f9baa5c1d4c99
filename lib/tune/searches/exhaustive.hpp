// SPDX-License-Identifier: BSL-1.0
//
// Launches every combination equally often, like OTPO; for comparison and for small spaces.
#ifdef RAILPASS_LIST_SEARCH
RAILPASS_LIST_SEARCH(exhaustive, "every combination, as OTPO does; for comparison")
#elif !defined(RAILPASS_TUNE_SEARCHES_EXHAUSTIVE)
#define RAILPASS_TUNE_SEARCHES_EXHAUSTIVE

#include "lib/tune/search.hpp"

namespace railpass::internal::tune {

class exhaustive_search final : public search {
 public:
  std::vector<combination> next(const search_view& view) override {
    // Repetitions are whole rounds apart, so that drift affects all combinations.
    constexpr std::size_t batch = 512;
    std::vector<combination> found;
    while (round_ < view.wanted.repetitions && found.size() < batch) {
      const bool more = at_.empty() ? (at_ = *view.where.first(), true) : view.where.next(at_);
      if (!more) {
        at_.clear();
        ++round_;
        if (!found.empty()) break;
        continue;
      }
      const record* r = view.measured.find(at_);
      if (!r || !r->failed()) found.push_back(at_);
    }
    return found;
  }

  double expected_runs(const search_view& view) const override {
    return count_up_to(view, 10000000) * view.wanted.repetitions;
  }

 private:
  combination at_;
  int round_ = 0;
};

}  // namespace railpass::internal::tune

#endif
