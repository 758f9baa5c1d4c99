// SPDX-License-Identifier: BSL-1.0
//
// Knowledge gradient: each epoch tries the arms whose measurement is expected to save more in later
// calls than it costs. Arms with the best value per call come first, within a budget. The horizon
// is half as long again as the past: H = min(2000, 40 + 1.5 calls), and twice that after a change.
// Source: Ryzhov, Powell, Frazier: The knowledge gradient algorithm for a general class of online
// learning problems, Operations Research 60(1), 2012, doi:10.1287/opre.1110.0999; several samples
// at once (KG*): Frazier, Powell: Paradoxes in learning and the marginal value of information,
// Decision Analysis 7(4), 2010, doi:10.1287/deca.1100.0190.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(knowledge_gradient,
                     "tries the arms whose measurement is worth more than its cost, learns from "
                     "the models and from similar arms")
#elif !defined(RAILPASS_SELECT_POLICIES_KNOWLEDGE_GRADIENT)
#define RAILPASS_SELECT_POLICIES_KNOWLEDGE_GRADIENT

#include "railpass/select/belief/belief_policy.hpp"
#include "railpass/select/policy/guard.hpp"

#include <array>

namespace railpass::select {

class knowledge_gradient final : public belief_policy {
 public:
  explicit knowledge_gradient(policy_input input) : belief_policy(std::move(input)) {
    weigh(plain_, 0, 1);
    // Three predictions in a hundred may be off by three times the prior's spread, however well the
    // other predictions fit.
    weigh(heavy_, 0.03, 3);
    looked_at_.assign(arms().size(), 0);
    probability_.assign(arms().size(), 0);
    probability_[std::size_t(position_of(incumbent()))] = 1;
  }

  void learn(const arm_book& book) override {
    belief_policy::learn(book);
    if (const auto slowed = beliefs().slowed()) {
      const int position = position_of(*slowed);
      std::erase_if(slowed_, [&](const slowed_arm& s) { return s.position == position; });
      slowed_.push_back({position, book.calls()});
    }
  }

  epoch_plan plan(const planning_input& now) override {
    const bool try_native = choose_incumbent();
    if (try_native && beliefs().samples(incumbent()) == 0) {
      // With good predictions and an unknown native, the very first call times native and the next
      // calls run the best predicted arm. Then measurements decide.
      epoch_plan first{.incumbent = number_of(incumbent()),
                       .explore = {{0, number_of(native())}},
                       .length = int(first_length),
                       .timed_stride = 1};
      publish(std::vector{position_of(native())}, first.length);
      return first;
    }
    double length = longest_length(now);
    if (!is_incumbent_as_before()) length = std::min(early_length(), length);
    std::vector<int> explore = worth_exploring(now, length);
    if (try_native && std::ranges::find(explore, position_of(native())) == explore.end())
      explore.push_back(position_of(native()));
    maintain(now, length, explore);
    const int calls = int(std::clamp(length, 1.0, double(1 << 30)));
    publish(explore, std::max(calls, int(explore.size())));
    epoch_plan p = shuffled(explore, std::min(calls, longest_shuffled), stride_for(calls));
    p.length = calls;
    return p;
  }

  std::vector<double> probabilities() const override { return probability_; }

 private:
  // Points of the quadrature, from -5 to 5; one extra point of weight 0 allows vectorisation.
  static constexpr std::size_t points = 21;
  using at_points = std::array<double, points + 1>;
  static constexpr at_points abscissas = [] {
    at_points z{};
    for (std::size_t k = 0; k < z.size(); ++k) z[k] = -5 + 0.5 * double(k);
    return z;
  }();
  static constexpr double explored_share = 0.75;  // of an epoch
  // Per epoch; the other entries of a plan are kept for maintenance.
  static constexpr std::size_t most_tries = epoch_plan::max_explore - 8;
  static constexpr int most_samples = 64;  // of one arm at the same time
  // Trials are spread over at most this many calls of an epoch.
  static constexpr int longest_shuffled = 4096;

  /// An arm that became slower while it was in use, maybe temporarily and with all other arms.
  struct slowed_arm {
    int position = 0;        // in arms()
    std::int64_t since = 0;  // call
    double patience = 1;     // factor for the next wait, which grows each time
  };

  /// Weights of the quadrature: a normal distribution, a share of it wider.
  static void weigh(at_points& weights, double wide_share, double width) {
    double sum = 0;
    for (std::size_t k = 0; k < points; ++k) {
      const double z = abscissas[k], wide = z / width;
      sum += weights[k] = (1 - wide_share) * std::exp(-0.5 * z * z) +
                          wide_share * std::exp(-0.5 * wide * wide) / width;
    }
    for (double& w : weights) w /= sum;
  }

  /// ln of the largest estimated slowdown against the incumbent for an exploring call: 2.5 in the
  /// first 128 calls, then slowly more.
  static double largest_slowdown(std::int64_t calls) {
    return std::log(2.5) + std::max(0.0, std::log(double(calls) / 128));
  }

  /// The arms to try (positions in arms(), one entry per call). `length` grows if that pays.
  std::vector<int> worth_exploring(const planning_input& now, double& length) {
    const belief& b = beliefs();
    const int best = incumbent(), k = num_active();
    const double noise = b.noise_variance();
    covariance after = b.covariances();  // after all outstanding observations
    std::vector<int> under_way(std::size_t(k), 0);
    for (const int arm : now.pending)
      if (const int a = index_of(arm); a >= 0) ++under_way[std::size_t(a)];
    for (int a = 0; a < k; ++a)
      if (under_way[std::size_t(a)] > 0)
        after.observe(a, noise / under_way[std::size_t(a)] + belief::separation_variance);
    after.observe(best, noise / std::max(1.0, length / 2) + belief::separation_variance);

    const double horizon = std::min(2000.0, 40.0 + 1.5 * double(now.calls));
    const double risk = risk_of_a_first_call();
    double budget = 1 + 4 * doubt() + budget_share() * double(now.calls) - spent();
    // After a change early knowledge is worth more: the calls until the reply are used, too.
    int left = int(std::lround(explored_share * (length + (has_changed() ? now.reply_calls : 0))));
    double gained = 0;
    bool extended = false;
    std::vector<int> explore;
    std::vector<double> excess(std::size_t(k), 0), spread_squared(std::size_t(k), 0);
    while (explore.size() < most_tries) {
      if (left <= 0) {
        if (extended) break;
        extended = true;
        const double longer = extended_length(now, length, gained);
        left = int(explored_share * (longer - length));
        length = longer;
        if (left <= 0) break;
      }
      std::vector<int> candidates;
      for (int a = 0; a < k; ++a) {
        excess[std::size_t(a)] = b.cost(a) - b.cost(best);
        spread_squared[std::size_t(a)] = after.of_difference(a, best);
        if (a != best && excess[std::size_t(a)] < 4.5 * std::sqrt(spread_squared[std::size_t(a)]))
          candidates.push_back(a);
      }
      int chosen = -1, chosen_samples = 0;
      double chosen_value = 0, chosen_price = 0, chosen_gain = 0;
      for (const int a : candidates) {
        const double d = excess[std::size_t(a)], v = spread_squared[std::size_t(a)];
        if (d + std::sqrt(v) > largest_slowdown(now.calls)) continue;
        double price = std::exp(d + v / 2) - 1;
        const double risks = is_proven(a) || a == native() || b.bad_first(a) ? 0 : risk;
        // The arm's only sample may have been an outlier, or the first of many slow calls.
        if (const auto bad = b.bad_first(a))
          price = std::max(price, 0.5 * (std::exp(*bad - b.cost(best)) - 1));
        for (int n = 1; n <= most_samples && n <= left && n * price <= budget; n *= 2) {
          const double gain = value_of(a, n, candidates, after, excess, spread_squared, noise);
          const double value = (horizon * gain - n * (price + risks)) / n;
          if (value <= chosen_value) continue;
          chosen = a;
          chosen_samples = n;
          chosen_value = value;
          chosen_price = price;
          chosen_gain = gain;
        }
      }
      if (chosen < 0) break;
      const int room = int(most_tries - explore.size());
      chosen_samples = std::min(chosen_samples, room);
      const double paid = std::max(0.0, chosen_price * chosen_samples);
      budget -= paid;
      spent() += paid;
      explore.insert(explore.end(), std::size_t(chosen_samples), position_of(chosen));
      left -= chosen_samples;
      gained += chosen_gain;
      after.observe(chosen, noise / chosen_samples + belief::separation_variance);
    }
    if (!extended) length = extended_length(now, length, gained);
    return explore;
  }

  /// Epochs are long if no arm is worth trying. Otherwise they end before the cost of a
  /// synchronisation exceeds the value of knowing earlier.
  double extended_length(const planning_input& now, double length, double gained) const {
    const double kappa = now.merge_cost_s / std::exp(beliefs().expected(incumbent()));
    return std::min(longest_length(now), std::max(length, 2 * kappa / std::max(1e-9, gained)));
  }

  /// Expected relative saving per call if the best arm is chosen after `n` samples of arm `a`.
  double value_of(int a, int n, const std::vector<int>& candidates, const covariance& after,
                  const std::vector<double>& excess, const std::vector<double>& spread_squared,
                  double noise) const {
    const double scale = 1 / std::sqrt(after(a, a) + noise / n + belief::separation_variance);
    const double own = after(incumbent(), a);
    at_points best{};
    for (const int j : candidates) {
      const double slope = (after(j, a) - own) * scale;
      const double level = excess[std::size_t(j)] +
                           0.5 * std::max(0.0, spread_squared[std::size_t(j)] - slope * slope);
      if (level > 5 * std::abs(slope)) continue;
      for (std::size_t k = 0; k < best.size(); ++k) {
        const double line = level + slope * abscissas[k];
        best[k] = line < best[k] ? line : best[k];  // std::min would prevent vectorisation
      }
    }
    const auto& weights = beliefs().samples(a) > 0 ? plain_ : heavy_;
    double value = 0;
    for (std::size_t k = 0; k < points; ++k)
      if (best[k] < 0) value += weights[k] * (1 - std::exp(best[k]));
    return value;
  }

  /// Adds trials of arms that have not been tried for long, outsiders included. Periods grow with
  /// the square root of a trial's cost, which minimises them for a given total cost. They grow with
  /// the cost itself for arms that would have to become more than twice as fast to matter. Arms
  /// without samples wait longer, because one may be a trap, unless nothing is known about any arm.
  void maintain(const planning_input& now, double length, std::vector<int>& explore) {
    const belief& b = beliefs();
    credit_ = std::min(most_credit, credit_ + maintenance_share(now.calls) * length);
    const auto room = std::size_t(std::clamp(length - 1, 0.0, double(epoch_plan::max_explore)));
    if (now.calls == 0 || explore.size() >= room) return;
    look_at_slowed(now, room, explore);
    take_first_looks(now, room, explore);
    struct look {
      double due = 0;  // age in periods
      double price = 0;
      int position = 0;
    };
    std::vector<look> looks;
    const auto consider = [&](int position, double log_seconds, double spread, bool tried) {
      const double excess = log_seconds - b.cost(incumbent()), price = std::exp(excess) - 1;
      if (price >= most_credit) return;
      const std::int64_t age =
          now.calls - std::max(last_seen(position), looked_at_[std::size_t(position)]);
      const double hoped = std::max(0.0, std::exp(excess - spread / 2) - 1);
      double periods = std::max({std::sqrt(hoped + 0.1), hoped, tried ? 0 : untried_periods});
      if (!tried && arms()[std::size_t(position)].measured_only) periods = unpredicted_periods;
      const double period = look_period * periods * std::max(1.0, double(now.calls) / steady_calls);
      if (double(age) >= period)
        looks.push_back({double(age) / std::max(1.0, period), price, position});
    };
    const double error = prediction_error();
    for (int a = 0; a < num_active(); ++a) {
      if (a == incumbent()) continue;
      consider(position_of(a), b.cost(a), std::sqrt(b.covariances().of_difference(a, incumbent())),
               is_proven(a));
    }
    for (const outsider& o : outsiders())
      consider(o.position, expected(o, error), o.measured ? 0 : b.prior_spread(), o.measured);
    std::sort(looks.begin(), looks.end(),
              [](const look& x, const look& y) { return x.due > y.due; });
    for (const look& l : looks) {
      if (explore.size() >= room || std::min(l.price, most_credit) > credit_) break;
      credit_ -= l.price;
      explore.push_back(l.position);
      looked_at_[std::size_t(l.position)] = now.calls;
    }
  }
  /// Tries each arm once, however slow its prediction, because only a call reveals a wrong
  /// prediction. The cheapest arms come first, within a share of the calls.
  void take_first_looks(const planning_input& now, std::size_t room, std::vector<int>& explore) {
    if (double(now.calls) < untried_periods * look_period) return;
    std::vector<std::pair<double, int> > untried;  // price and position
    const auto consider = [&](int position, double log_seconds) {
      if (looked_at_[std::size_t(position)] > 0) return;
      const double price = std::exp(log_seconds - beliefs().cost(incumbent())) - 1;
      untried.emplace_back(std::max(least_first_price, price), position);
    };
    for (int a = 0; a < num_active(); ++a)
      if (a != incumbent() && !is_proven(a)) consider(position_of(a), beliefs().cost(a));
    const double error = prediction_error();
    for (const outsider& o : outsiders())
      if (!o.measured) consider(o.position, expected(o, error));
    std::sort(untried.begin(), untried.end());
    for (const auto& [price, position] : untried) {
      if (explore.size() >= room || first_looks_ + price > first_look_share * double(now.calls))
        return;
      first_looks_ += price;
      explore.push_back(position);
      looked_at_[std::size_t(position)] = now.calls;
    }
  }
  /// Tries an arm that became slower (maybe temporarily) again once that costs a tenth of the calls
  /// since, then after ever longer waits.
  void look_at_slowed(const planning_input& now, std::size_t room, std::vector<int>& explore) {
    constexpr double share = 0.1, rarer = 2;
    const auto price = [&](const slowed_arm& s) {
      const int a = index_of(arms()[std::size_t(s.position)].arm);
      return a < 0 ? 0 : std::exp(beliefs().cost(a) - beliefs().cost(incumbent())) - 1;
    };
    std::erase_if(slowed_, [&](const slowed_arm& s) { return price(s) <= 0; });
    for (slowed_arm& s : slowed_) {
      if (explore.size() >= room) break;
      if (price(s) * s.patience > share * double(now.calls - s.since)) continue;
      explore.push_back(s.position);
      looked_at_[std::size_t(s.position)] = now.calls;
      s.patience *= rarer;
    }
  }
  /// The largest share of time, which decreases as the periods grow.
  static double maintenance_share(std::int64_t calls) {
    return 0.02 * std::min(1.0, steady_calls / double(std::max<std::int64_t>(1, calls)));
  }
  static constexpr double look_period = 1600, untried_periods = 0.8, unpredicted_periods = 0.05,
                          steady_calls = 4000;
  static constexpr double most_credit = 6;  // calls
  // The largest share of the calls so far, and the least cost of a first call, in calls.
  static constexpr double first_look_share = 0.015, least_first_price = 0.5;

  void publish(const std::vector<int>& explore, int calls) {
    std::fill(probability_.begin(), probability_.end(), 0.0);
    for (const int position : explore) probability_[std::size_t(position)] += 1.0 / calls;
    probability_[std::size_t(position_of(incumbent()))] += 1 - double(explore.size()) / calls;
  }

  at_points plain_{}, heavy_{};
  std::vector<double> probability_;      // by position in arms()
  std::vector<std::int64_t> looked_at_;  // call of the last planned trial, by position in arms()
  std::vector<slowed_arm> slowed_;
  double credit_ = 0;
  double first_looks_ = 0;  // their expected cost, in calls
};

class knowledge_gradient_policy final : public guarded_policy {
 public:
  explicit knowledge_gradient_policy(const policy_input& input)
      : guarded_policy(std::make_unique<knowledge_gradient>(input), input.says_worth,
                       input.all_wait, input.baseline) {}
};

}  // namespace railpass::select

#endif
