// SPDX-License-Identifier: BSL-1.0
//
// 2^k factorial design (Jain, The Art of Computer Systems Performance Analysis, 1991, chapter 17).
// The corners of the space show which parameters matter, alone or in pairs. All values of these
// parameters race; the other parameters keep their values in the best corner. Corners that the
// conditions forbid are left out. Of more than 64 corners, a random 64 are measured.
#ifdef RAILPASS_LIST_SEARCH
RAILPASS_LIST_SEARCH(factorial, "the corners first, then all values of the parameters that matter")
#elif !defined(RAILPASS_TUNE_SEARCHES_FACTORIAL)
#define RAILPASS_TUNE_SEARCHES_FACTORIAL

#include "lib/tune/searches/race.hpp"

#include <set>

namespace railpass::internal::tune {

class factorial_search final : public search {
 public:
  std::vector<combination> next(const search_view& view) override {
    switch (stage_++) {
      case 0:
        return corners(view);
      case 1:
        race_ = race(rest(view));
        break;
      default:
        break;
    }
    return race_.next(view);
  }

  double expected_runs(const search_view& view) const override {
    return 2.2 * count_up_to(view, 100);
  }

 private:
  static constexpr std::size_t most_corners = 64, most_entrants = 4096;
  static constexpr double matters = 0.02;  // share of the corners' variation

  std::vector<combination> corners(const search_view& view) {
    const auto& parameters = view.where.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].levels() > 1) varied_.push_back(i);
    const bool all = varied_.size() < 63 && (std::uint64_t{1} << varied_.size()) <= most_corners;
    std::set<combination> chosen;
    for (std::uint64_t n = 0; n < (all ? std::uint64_t{1} << varied_.size() : 40 * most_corners);
         ++n) {
      const std::uint64_t bits = all ? n : view.random();
      combination c(parameters.size(), 0);
      for (std::size_t k = 0; k < varied_.size(); ++k)
        if (bits >> (k % 64) & 1) c[varied_[k]] = high(view, k);
      if (view.where.allows(c)) chosen.insert(std::move(c));
      if (chosen.size() == most_corners) break;
    }
    corners_.assign(chosen.begin(), chosen.end());
    return corners_;
  }

  std::uint16_t high(const search_view& view, std::size_t k) const {
    return std::uint16_t(view.where.parameters()[varied_[k]].levels() - 1);
  }

  std::vector<combination> rest(const search_view& view) {
    std::vector<std::pair<combination, double> > seen;
    const standings ranks = view.ranks();
    for (const standing& s : ranks.all()) seen.emplace_back(s.of->what, s.score);
    if (seen.empty()) return all_or_some(view, most_corners);
    // Share of the variation due to one parameter, or to a pair beyond the effects of each
    // parameter.
    double mean = 0, total = 1e-300;
    for (const auto& [c, score] : seen) mean += score / double(seen.size());
    for (const auto& [c, score] : seen) total += (score - mean) * (score - mean);
    const auto share = [&](auto sign) {
      double sum[2] = {0, 0};
      int count[2] = {0, 0};
      for (const auto& [c, score] : seen) {
        sum[sign(c)] += score;
        ++count[sign(c)];
      }
      if (count[0] == 0 || count[1] == 0) return 0.0;
      const double effect = (sum[1] / count[1] - sum[0] / count[0]) / 2;
      return effect * effect * double(seen.size()) / total;
    };
    std::vector<bool> free(varied_.size(), false);
    for (std::size_t k = 0; k < varied_.size(); ++k) {
      const auto is_high = [&](const combination& c, std::size_t of) {
        return c[varied_[of]] != 0;
      };
      if (share([&](const combination& c) { return is_high(c, k); }) > matters) free[k] = true;
      for (std::size_t l = 0; l < k; ++l)
        if (share([&](const combination& c) { return is_high(c, k) != is_high(c, l); }) > matters)
          free[k] = free[l] = true;
    }
    // All values of the free parameters; the other parameters as in the best corner.
    std::vector<combination> entrants;
    combination c = seen.front().first;
    for (std::size_t k = 0; k < varied_.size(); ++k)
      if (free[k]) c[varied_[k]] = 0;
    for (bool more = true; more && entrants.size() < most_entrants;) {
      if (view.where.allows(c)) entrants.push_back(c);
      more = false;
      for (std::size_t k = varied_.size(); k-- > 0 && !more;) {
        if (!free[k]) continue;
        more = c[varied_[k]] < high(view, k);
        c[varied_[k]] = more ? std::uint16_t(c[varied_[k]] + 1) : 0;
      }
    }
    return entrants;
  }

  std::vector<std::size_t> varied_;
  std::vector<combination> corners_;
  race race_;
  int stage_ = 0;
};

}  // namespace railpass::internal::tune

#endif
