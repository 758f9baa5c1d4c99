// SPDX-License-Identifier: BSL-1.0
//
// Varies one parameter after the other, with the other parameters at their best values so far,
// until a whole round changes nothing: ADCL's attribute-wise search (Gabriel, Huang,
// doi:10.1109/IPDPS.2007.370406). Joint effects of two parameters are not found.
#ifdef RAILPASS_LIST_SEARCH
RAILPASS_LIST_SEARCH(attribute, "one parameter at a time, until no change helps")
#elif !defined(RAILPASS_TUNE_SEARCHES_ATTRIBUTE)
#define RAILPASS_TUNE_SEARCHES_ATTRIBUTE

#include "lib/tune/searches/race.hpp"

namespace railpass::internal::tune {

class attribute_search final : public search {
 public:
  std::vector<combination> next(const search_view& view) override {
    const auto& parameters = view.where.parameters();
    if (best_.empty()) best_ = view.where.nearest_to_defaults();
    for (;;) {
      if (racing_) {
        if (auto starters = race_.next(view); !starters.empty()) return starters;
        racing_ = false;
        const combination before = best_;
        choose(view);
        unchanged_ = best_ == before ? unchanged_ + 1 : 0;
        parameter_ = (parameter_ + 1) % parameters.size();
      }
      if (unchanged_ >= parameters.size()) return {};
      if (parameters[parameter_].levels() < 2) {
        ++unchanged_;
        parameter_ = (parameter_ + 1) % parameters.size();
        continue;
      }
      entrants_.clear();
      combination c = best_;
      for (std::size_t level = 0; level < parameters[parameter_].levels(); ++level) {
        c[parameter_] = std::uint16_t(level);
        if (view.where.allows(c)) entrants_.push_back(c);
      }
      race_ = race(entrants_);
      racing_ = true;
    }
  }

  double expected_runs(const search_view& view) const override {
    double levels = 0;
    for (const parameter& p : view.where.parameters()) levels += double(p.levels());
    return 3 * levels;
  }

 private:
  // Changes the value only if another value is better with confidence.
  void choose(const search_view& view) {
    const standings ranks = view.ranks();
    const standing *here = nullptr, *first = nullptr;
    for (const standing& s : ranks.all()) {
      if (s.of->what == best_) here = &s;
      if (!first && std::find(entrants_.begin(), entrants_.end(), s.of->what) != entrants_.end())
        first = &s;
    }
    if (first && (!here || !ranks.tied(*first, *here))) best_ = first->of->what;
  }

  combination best_;
  std::vector<combination> entrants_;
  race race_;
  bool racing_ = false;
  std::size_t parameter_ = 0, unchanged_ = 0;
};

}  // namespace railpass::internal::tune

#endif
