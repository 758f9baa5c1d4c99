// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/tuner.hpp"

#include "lib/tune/searches.hpp"
#include "railpass/base/clock.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>

namespace railpass::internal::tune {

namespace {

// Shares of the budget after which the search and the repetitions must have ended.
constexpr double search_share = 0.8, repetition_share = 0.92;
constexpr std::size_t most_repeated = 64;

class running_tuning {
 public:
  running_tuning(const space& where, const std::vector<goal>& goals, const tuning_plan& plan,
                 const launcher& launch, journal& kept, const watcher& watch)
      : where_(where),
        plan_(plan),
        launch_(launch),
        kept_(kept),
        watch_(watch),
        random_(plan.seed),
        result_(goals) {
    for (const journal_entry& e : kept.earlier()) replay_[{e.why, e.what}].push_back(e.found);
    cut_short_ = kept.earlier_runs() - kept.earlier().size();
  }

  tuning run() {
    for (int i = 0; i < plan_.warm_ups; ++i) measure(purpose::warm_up, {}, 1);
    const auto all_weights = weightings(result_.measured.goals().size());
    for (std::size_t w = 0; w < all_weights.size(); ++w) {
      const double part = double(w + 1) / double(all_weights.size());
      find(all_weights[w], search_share * part);
    }
    for (const auto& weights : all_weights) repeat_winners(weights);
    check(all_weights.back());
    return std::move(result_);
  }

 private:
  search_view view(std::span<const double> weights, double share) {
    return {where_, result_.measured, weights, plan_.wanted, runs_left(share), random_};
  }

  // The time charged to the budget: launches, including replayed ones, and the search between.
  double elapsed_s() const { return replayed_s_ + steady_clock_s() - begin_s_; }

  double mean_s() const { return ended_ ? result_.spent_s / double(ended_) : 0; }

  // Number of launches that fit into this share of the budget.
  std::uint64_t runs_left(double share) const {
    constexpr std::uint64_t many = 1000000;
    std::uint64_t left = many;
    if (plan_.most_runs > 0) {
      const std::uint64_t most = std::uint64_t(share * double(plan_.most_runs));
      left = most > result_.runs ? most - result_.runs : 0;
    }
    if (plan_.budget_s > 0) {
      const double left_s = share * plan_.budget_s - elapsed_s();
      left = std::min(left, left_s <= mean_s() / 2
                                ? 0
                                : std::uint64_t(std::clamp(left_s / std::max(mean_s(), 1e-3), 1.0,
                                                           double(many))));
    }
    return left;
  }

  // Launches once more, or replays a launch from the journal. Nothing if no time is left. Replayed
  // launches count when they are replayed: a search that is resumed then has as much left at each
  // step as it had before, and asks for the same launches.
  std::optional<outcome> measure(purpose why, const combination& what, double share) {
    if (auto& earlier = replay_[{why, what}]; !earlier.empty()) {
      outcome found = std::move(earlier.front());
      earlier.pop_front();
      ++result_.runs;
      count(found);
      replayed_s_ += found.took_s;
      return found;
    }
    result_.runs += std::exchange(cut_short_, 0);
    if (runs_left(share) == 0) return std::nullopt;
    if (watch_) {
      const double expected = std::max(expected_, double(result_.runs) + 1);
      double left_s = (expected - double(result_.runs)) * mean_s();
      if (plan_.budget_s > 0) left_s = std::min(left_s, plan_.budget_s - elapsed_s());
      watch_(result_.runs, expected, left_s);
    }
    kept_.began(why, what);
    ++result_.runs;
    const double begin_s = steady_clock_s();
    outcome found = launch_(what.empty() ? nullptr : &what);
    found.took_s = steady_clock_s() - begin_s;
    kept_.ended({why, what, found});
    count(found);
    return found;
  }

  void count(const outcome& ended) {
    ++ended_;
    result_.spent_s += ended.took_s;
  }

  // Measures a batch in random order, so that drift affects all members alike. False: no time left.
  bool measure_all(std::vector<combination> batch, double share) {
    for (std::size_t i = batch.size(); i > 1; --i) std::swap(batch[i - 1], batch[random_() % i]);
    for (const combination& c : batch) {
      const record* known = result_.measured.find(c);
      if (known && known->failed()) continue;
      const auto found = measure(purpose::search, c, share);
      if (!found) return false;
      result_.measured.add(c, *found);
    }
    return true;
  }

  void find(std::span<const double> weights, double share) {
    const auto asked = make_search(plan_.search);
    expected_ = double(result_.runs) + asked->expected_runs(view(weights, share));
    for (;;) {
      const auto batch = asked->next(view(weights, share));
      if (batch.empty()) return;
      if (!measure_all(batch, share)) {
        result_.complete = false;
        return;
      }
    }
  }

  // Every combination that cannot be distinguished from the best needs the wanted number of
  // launches. If very many are equal, only some are repeated, but always the best.
  void repeat_winners(std::span<const double> weights) {
    for (;;) {
      const standings ranks(result_.measured, weights, plan_.wanted);
      std::vector<combination> batch;
      std::size_t sure = 0;
      for (std::size_t i = 0; i < ranks.winners(); ++i)
        sure += ranks.all()[i].of->runs >= plan_.wanted.repetitions;
      for (std::size_t i = 0; i < ranks.winners(); ++i)
        if (ranks.all()[i].of->runs < plan_.wanted.repetitions &&
            (i == 0 || sure + batch.size() < most_repeated))
          batch.push_back(ranks.all()[i].of->what);
      if (batch.empty()) return;
      if (!measure_all(batch, repetition_share)) {
        result_.complete = false;
        return;
      }
    }
  }

  // Among the combinations that cannot be distinguished from the best, the combination that keeps
  // most defaults: changes without a visible effect are not needed.
  const combination& least_change(const standings& ranks) const {
    const combination usual = where_.nearest_to_defaults();
    const auto changes = [&](const standing& s) {
      std::size_t changed = 0;
      for (std::size_t i = 0; i < usual.size(); ++i)
        changed += where_.parameters()[i].default_value && s.of->what[i] != usual[i];
      return changed;
    };
    const standing* chosen = &ranks.all().front();
    for (std::size_t i = 1; i < ranks.winners(); ++i) {
      const standing& s = ranks.all()[i];
      if (s.of->runs >= plan_.wanted.repetitions && changes(s) < changes(*chosen)) chosen = &s;
    }
    return chosen->of->what;
  }

  void check(std::span<const double> weights) {
    const standings ranks(result_.measured, weights, plan_.wanted);
    result_.noise = ranks.noise();
    if (ranks.all().empty()) return;
    result_.recommended = least_change(ranks);
    for (int i = 0; i < plan_.wanted.repetitions; ++i)
      for (const bool defaults : {true, false}) {
        const auto found =
            measure(purpose::check, defaults ? combination{} : *result_.recommended, 1);
        if (!found) break;
        (defaults ? result_.defaults : result_.checks).push_back(*found);
        if (!found->ok()) break;
      }
    std::vector<double> scores[2];
    for (std::size_t side = 0; side < 2; ++side)
      for (const outcome& o : side ? result_.checks : result_.defaults) {
        if (!o.ok()) return;
        std::vector<double> per_goal;
        for (std::size_t g = 0; g < o.values.size(); ++g)
          per_goal.push_back(result_.measured.score_of(o.values[g], g));
        scores[side].push_back(weighted(per_goal, weights));
      }
    if (scores[0].empty() || scores[1].empty()) return;
    const double difference = typical_score(scores[1]) - typical_score(scores[0]);
    double variance = 0;
    for (const auto& side : scores)
      variance += std::pow((side.size() < 3 ? 1 : 1.2) * std::max(ranks.noise(), 0.0), 2) /
                  double(side.size());
    const double margin = ranks.margin(std::sqrt(variance));
    result_.cost_ratio = {std::exp(difference), std::exp(difference - margin),
                          std::exp(difference + margin)};
  }

  const space& where_;
  const tuning_plan& plan_;
  const launcher& launch_;
  journal& kept_;
  const watcher& watch_;
  std::mt19937_64 random_;
  tuning result_;
  std::map<std::pair<purpose, combination>, std::deque<outcome>> replay_;
  const double begin_s_ = steady_clock_s();
  double replayed_s_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t cut_short_ = 0;  // launches that began before and did not end
  double expected_ = 0;
};

}  // namespace

std::vector<std::vector<double>> weightings(std::size_t goals) {
  if (goals == 1) return {{1}};
  return {{1, 0}, {0, 1}, {0.5, 0.5}};
}

tuning tune(const space& where, const std::vector<goal>& goals, const tuning_plan& plan,
            const launcher& launch, journal& kept, const watcher& watch) {
  return running_tuning(where, goals, plan, launch, kept, watch).run();
}

}  // namespace railpass::internal::tune
