// SPDX-License-Identifier: BSL-1.0
//
// The default search. First launches cover all pairs of values, to see joint effects of two
// parameters (as test suites do: Cohen, Dalal, Fredman, Patton, doi:10.1109/32.605761). Then a
// model (surrogate.hpp) proposes combinations that may be better than the best (expected
// improvement, Jones, Schonlau, Welch, doi:10.1023/A:1008306431147) and combinations that may be as
// good. Both are launched until no remaining combination has more than a small probability of
// either. Last, combinations one change away from the best are launched; the search ends when these
// bring nothing new.
#ifdef RAILPASS_LIST_SEARCH
RAILPASS_LIST_SEARCH(model, "launches what a model of values and pairs of values finds promising")
#elif !defined(RAILPASS_TUNE_SEARCHES_MODEL)
#define RAILPASS_TUNE_SEARCHES_MODEL

#include "lib/tune/search.hpp"
#include "lib/tune/surrogate.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <set>

namespace railpass::internal::tune {

class model_search final : public search {
 public:
  std::vector<combination> next(const search_view& view) override {
    if (!model_) {
      model_ = std::make_unique<surrogate>(view.where);
      return covering(view);
    }
    const standings ranks = view.ranks();
    if (ranks.all().empty()) return ++rounds_without_ < 8 ? all_or_some(view, 16) : none;
    std::vector<combination> chosen;
    // Repeated launches of the best give the noise, and show that the leader does not lead by luck.
    const int sure = ranks.noise() > 0 ? view.wanted.repetitions : 2;
    for (std::size_t i = 0;
         i < std::min<std::size_t>(ranks.noise() > 0 ? 1 : 3, ranks.all().size()); ++i)
      if (ranks.all()[i].of->runs < std::min(sure, view.wanted.repetitions))
        chosen.push_back(ranks.all()[i].of->what);
    auto promising = ask_model(view, ranks);
    if (promising.empty()) promising = neighbours(view, ranks.all().front().of->what);
    chosen.insert(chosen.end(), promising.begin(), promising.end());
    return chosen;
  }

  double expected_runs(const search_view& view) const override {
    return std::min(2.2 * count_up_to(view, 60), 150.0);
  }

 private:
  static inline const std::vector<combination> none;
  static constexpr std::size_t batch = 4, most_candidates = 4096, most_covering = 200,
                               most_observations = 500, enough_winners = 32, few_levels = 8;
  static constexpr double improbable = 0.02;  // to be better than the best
  static constexpr double unlikely = 0.1;     // to be as good as the best

  std::vector<combination> covering(const search_view& view) {
    const auto& parameters = view.where.parameters();
    std::vector<std::size_t> varied;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].levels() > 1) varied.push_back(i);
    std::set<std::array<std::size_t, 4> > covered;
    const auto pairs_of = [&](const combination& c) {
      std::vector<std::array<std::size_t, 4> > pairs;
      for (std::size_t k = 0; k < varied.size(); ++k) {
        pairs.push_back({varied[k], c[varied[k]], varied[k], c[varied[k]]});
        for (std::size_t l = 0; l < k; ++l)
          pairs.push_back({varied[k], c[varied[k]], varied[l], c[varied[l]]});
      }
      return pairs;
    };
    std::vector<combination> chosen;
    const auto take = [&](const combination& c) {
      for (const auto& pair : pairs_of(c)) covered.insert(pair);
      chosen.push_back(c);
    };
    take(view.where.nearest_to_defaults());
    const std::size_t most = std::min<std::size_t>(
        most_covering, std::size_t(std::max<std::uint64_t>(8, view.runs_left / 3)));
    for (int fruitless = 0; chosen.size() < most && fruitless < 3;) {
      combination best;
      std::size_t gain = 0;
      for (int draw = 0; draw < 60; ++draw) {
        combination c = view.where.draw(view.random);
        std::size_t fresh = 0;
        for (const auto& pair : pairs_of(c)) fresh += covered.count(pair) == 0;
        if (fresh > gain) {
          gain = fresh;
          best = std::move(c);
        }
      }
      fruitless = gain == 0 ? fruitless + 1 : 0;
      if (gain > 0) take(best);
    }
    return chosen;
  }

  // All combinations or, in a large space, random combinations and neighbours of the best.
  std::vector<combination> candidates(const search_view& view, const standings& ranks) {
    std::vector<combination> found = all_or_some(view, most_candidates / 2);
    if (view.where.count(condition_rule::first_value, most_candidates) <= most_candidates / 2)
      return found;
    std::set<combination> known(found.begin(), found.end());
    const auto& parameters = view.where.parameters();
    for (std::size_t rank = 0; rank < ranks.all().size() && found.size() < most_candidates; ++rank)
      for (std::size_t i = 0; i < parameters.size() && found.size() < most_candidates; ++i)
        for (std::size_t level = 0; level < parameters[i].levels(); ++level) {
          combination c = ranks.all()[rank].of->what;
          c[i] = std::uint16_t(level);
          if (view.where.allows(c) && known.insert(c).second) found.push_back(std::move(c));
        }
    return found;
  }

  // One change away from the best: any other value, or the next values of a long numeric parameter.
  // The model's accuracy matters most there.
  static std::vector<combination> neighbours(const search_view& view, const combination& best) {
    std::vector<combination> found;
    const auto& parameters = view.where.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      for (std::size_t level = 0; level < parameters[i].levels(); ++level) {
        combination c = best;
        c[i] = std::uint16_t(level);
        const std::size_t steps = level > best[i] ? level - best[i] : best[i] - level;
        if (steps > 0 &&
            (steps == 1 || !parameters[i].numeric() || parameters[i].levels() <= few_levels) &&
            view.where.allows(c) && !view.measured.find(c))
          found.push_back(std::move(c));
      }
    return found;
  }

  std::vector<combination> ask_model(const search_view& view, const standings& ranks) {
    std::vector<observation> seen;
    double worst = -1e300;
    for (const standing& s : ranks.all()) {
      worst = std::max(worst, s.score);
      // Beyond most_observations, the worst combinations teach least.
      if (seen.size() < most_observations)
        seen.push_back({s.of->what, s.score, double(s.of->runs)});
    }
    for (const auto& [what, r] : view.measured.records())
      if (r.failed() && seen.size() < most_observations)
        seen.push_back({what, worst + std::log(2.0), 1});
    const bool learn = double(seen.size()) >= 1.1 * double(learnt_from_) + 1;
    model_->fit(seen, ranks.noise(), learn);
    if (learn) learnt_from_ = seen.size();

    std::vector<combination> open;
    for (combination& c : candidates(view, ranks))
      if (!view.measured.find(c)) open.push_back(std::move(c));
    if (open.empty()) return {};
    const standing ideal{nullptr, 0,
                         ranks.noise() / std::sqrt(double(view.wanted.repetitions)) * 1.2};
    const double tie = ranks.reach(ideal, ideal);
    std::vector<combination> leaders;
    for (std::size_t i = 0; i < std::min<std::size_t>(ranks.all().size(), 16); ++i)
      leaders.push_back(ranks.all()[i].of->what);
    const bool filled = ranks.winners() >= enough_winners;

    std::vector<combination> chosen;
    while (chosen.size() < batch && !open.empty()) {
      double best = 1e300;
      for (const auto& p : model_->predict(leaders)) best = std::min(best, p.mean);
      const auto predicted = model_->predict(open);
      // In turn: a combination that may be better, and a combination that may be as good.
      const bool improve = chosen.size() % 2 == 0 || filled;
      std::size_t pick = open.size();
      double most = 0;
      for (std::size_t i = 0; i < open.size(); ++i) {
        const auto& [mean, deviation] = predicted[i];
        const double z = (best - mean) / deviation;
        const double better = normal_below((best - tie - mean) / deviation);
        const double as_good = normal_below((best + tie - mean) / deviation);
        if (better < improbable && (filled || as_good < unlikely)) continue;
        const double gain =
            improve ? deviation * (z * normal_below(z) +
                                   std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi))
                    : as_good;
        if (pick == open.size() || gain > most) {
          most = gain;
          pick = i;
        }
      }
      if (pick == open.size()) break;
      chosen.push_back(open[pick]);
      // Until measured, the combination has the model's prediction.
      seen.push_back({open[pick], predicted[pick].mean, 1});
      model_->fit(seen, ranks.noise(), false);
      open.erase(open.begin() + std::ptrdiff_t(pick));
    }
    return chosen;
  }

  std::unique_ptr<surrogate> model_;
  std::size_t learnt_from_ = 0;
  int rounds_without_ = 0;
};

}  // namespace railpass::internal::tune

#endif
