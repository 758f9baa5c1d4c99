// SPDX-License-Identifier: BSL-1.0
//
// Plays every policy on recorded times of arms: the library's own priors, policies and lockstep,
// with noise on each call. bench/regret runs it.
//
//     regret_replay PROFILE SAMPLES_ONLY CELLS SEEDS NOISE
//         writes {"results": [...], "recovery": [...]} to standard output
//     regret_replay default PROFILE SAMPLES_ONLY CELLS SEEDS NOISE
//         the results of the default policy alone
//     regret_replay plain PROFILE CELLS POLICY CALLS
//         one run without noise: the time of each call, to be compared with a live one
//     regret_replay changing PROFILE CELLS SEEDS NOISE CALLS
//         the default policy; after CALLS calls all arms take the times of "slow" in the cell, and
//         after CALLS more calls their own times again: {"results": [{"collective", "bytes",
//         "tuned_s": [before, while, after]}]}, means over the seeds. bench/simgrid/changing.py
//         runs it.
//     regret_replay again PROFILE CELLS SEEDS NOISE CALLS
//         ten runs of the default policy in turn, each with the knowledge of all earlier runs:
//         {"results": [{"run", "collective", "bytes", "calls", "ratio_to_best_arm",
//         "ratio_to_native"}]}, without the first plan; PROFILE may be - for none.
//         bench/simgrid/remembering.py runs it.
//     regret_replay few PROFILE CELLS SEEDS NOISE CALLS FIRST
//         the same for calls so long that merges cost nothing; the first call of a run opens
//         connections and takes FIRST times as long as its arm
//     regret_replay misled PROFILE CELLS OTHER_CELLS SEEDS NOISE CALLS
//         the default policy with the knowledge of CALLS calls of the same collective and size in
//         OTHER_CELLS: {"results": [{"collective", "bytes", "beyond_native",
//         "beyond_ignorant"}]}, the time in native calls beyond always native, and beyond the same
//         policy without knowledge
//     regret_replay elsewhere PROFILE CELLS OTHER_CELLS SEEDS NOISE CALLS
//         the default policy with the knowledge of CALLS calls of a different problem in
//         OTHER_CELLS: at most three octaves of size away, or of the same size if collective or
//         ranks differ: {"results": [{"collective", "bytes", "ranks", "from": {"collective",
//         "bytes", "ranks"}, "calls", "ratio_to_best_arm", "ignorant"}]}, `ignorant`: the ratio of
//         the policy without knowledge; without the first plan
//
// CELLS: {"cells": [{"collective", "bytes", "ranks", "ranks_per_node", "merge", "merge_at_once",
// "first_plan_s", "arms": [{"arm", "seconds"}]}]}; a merge is {"adds_s", "charged_s"}: its delay of
// the calls, and the cost that the leader hears; missing values are the expected ones. Times are
// totals of the played arms without noise, plus merges and the first plan; noise only misleads the
// policies. p95 is over the seeds. The default policy also plays under adversities
// ("default, ..."). `recovery`: after 1000 calls the arm in use becomes three times slower, or a
// different arm twice as fast as the best was; the calls until the played arms, and the arm in use,
// are within 2 % of the new best, per seed, or null after 3000 calls.
#include "lib/files/files.hpp"
#include "lib/tuner/arm_statistics.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/knowledge/joined.hpp"
#include "railpass/knowledge/recall.hpp"
#include "railpass/knowledge/recalling.hpp"
#include "railpass/select/belief/prior.hpp"
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/lockstep/merge_costs.hpp"
#include "railpass/select/lockstep/skew.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/random.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace railpass;
using namespace railpass::internal;
using nlohmann::ordered_json;

constexpr int checkpoints[] = {30, 100, 1000, 10000};

/// The delay of the calls by a merge, and the cost that the leader hears.
struct merge_time {
  double adds_s = 0, charged_s = 0;

  void add(const merge_time& other) {
    adds_s += other.adds_s;
    charged_s += other.charged_s;
  }
};

merge_time read_merge(const ordered_json& j) {
  return {.adds_s = j.at("adds_s"), .charged_s = j.at("charged_s")};
}

struct cell {
  std::string op_name;
  std::int64_t bytes = 0;
  int num_ranks = 0;
  select::context_key key;
  std::map<int, double> true_s;  // by arm
  std::vector<select::arm_prior> priors;
  merge_time merge, merge_at_once;
  double first_plan_s = 0, best_s = 0, native_s = 0;
  select::merge_costs expected_merges;
};

/// Reads the time of each arm, by number.
std::map<int, double> read_times(collective op, const ordered_json& arms) {
  const std::vector<arm> all = arms_of(op);
  std::map<int, double> result;
  for (const ordered_json& a : arms) {
    const std::string name = a.at("arm");
    for (std::size_t i = 0; i < all.size(); ++i)
      if (name_of(all[i]) == name) result[int(i)] = a.at("seconds");
  }
  return result;
}

/// Reads a cell; without a profile its priors come from the generic machine.
cell read_cell(const profile* known, const ordered_json& j) {
  const machine_model machine = known ? known->machine : select::generic_machine();
  cell c;
  c.op_name = j.at("collective");
  c.bytes = j.at("bytes");
  c.num_ranks = j.at("ranks");
  c.expected_merges = select::expected_merge_costs(machine, c.num_ranks, j.at("ranks_per_node"));
  const double spread_s = c.expected_merges.spread_s, at_once_s = c.expected_merges.at_once_s;
  c.merge = j.contains("merge") ? read_merge(j["merge"]) : merge_time{spread_s, spread_s};
  c.merge_at_once = j.contains("merge_at_once") ? read_merge(j["merge_at_once"])
                                                : merge_time{at_once_s, at_once_s};
  c.first_plan_s = j.value("first_plan_s", 0.0);
  const auto op = find_collective(c.op_name);
  if (!op) throw error("there is no collective '" + c.op_name + "'");
  c.key = {.op = *op, .size_class = select::size_class_of(c.bytes)};
  const promise_traits traits = traits_of(*op);
  if (traits.reduces) c.key.operation = select::operation_class::builtin;
  c.true_s = read_times(*op, j.at("arms"));
  const std::vector<arm> all = arms_of(*op);
  for (const auto& [number, seconds] : c.true_s)
    c.priors.push_back(select::prior_of(all[std::size_t(number)], number,
                                        {.machine = machine,
                                         .knowledge = known,
                                         .key = c.key,
                                         .num_ranks = c.num_ranks,
                                         .ranks_per_node = j.at("ranks_per_node"),
                                         .unit_bytes = traits.reduces ? 8.0 : 1.0,
                                         .bytes = double(c.bytes)}));
  if (!c.true_s.contains(select::native_arm)) throw error(c.op_name + ": native is not recorded");
  c.native_s = c.best_s = c.true_s.at(select::native_arm);
  for (const auto& [number, seconds] : c.true_s) c.best_s = std::min(c.best_s, seconds);
  return c;
}

/// Disturbances that mislead the policies.
struct weather {
  double jitter = 0;         ///< standard deviation of ln(measured / true)
  double slow_share = 0;     ///< of calls that are measured up to 50 times too slow
  bool all_slowest = false;  ///< those are measured 50 times too slow, no less
  double lateness = 0;       ///< added to what is measured: exponential, in calls of the best arm
  /// Mean lateness of the last rank behind the first rank, in calls of the best arm; the lateness
  /// of each rank is exponentially distributed.
  double apart = 0;
  /// One arm among this number of the fastest by prediction, never the best arm, takes 30 times as
  /// long as predicted; the seed chooses the arm.
  std::size_t trap_among = 0;
  double first_call = 1;  ///< the time of the first call, which opens connections, in usual times
};

weather usual(double noise) {
  return {.jitter = noise, .slow_share = noise > 0 ? 0.01 : 0, .lateness = noise};
}

knowledge::problem problem_of(const cell& c) {
  return {.collective = c.op_name,
          .operation = std::string(select::operation_class_names[std::size_t(c.key.operation)]),
          .num_ranks = c.num_ranks,
          .bytes = c.bytes};
}

/// Knowledge before the first call: an earlier problem, the predictions for it, and its distance in
/// octaves. Arms have the numbers of this problem.
struct recollection {
  knowledge::experience known;
  std::vector<select::arm_prior> predicted_there;
  double octaves = 0;
};

recollection of_the_same(const cell& c, knowledge::experience known) {
  return {std::move(known), c.priors, 0};
}

std::vector<select::arm_prior> recalled(const cell& c, const recollection& r) {
  std::vector<select::arm_prior> priors = c.priors;
  const std::vector<arm> arms = arms_of(c.key.op);
  knowledge::correct_by_experience(
      priors, [&](int number) { return name_of(arms[std::size_t(number)]); }, r.known,
      r.predicted_there, r.octaves);
  return priors;
}

/// Plays the calls of one communicator on one rank, so reductions change nothing.
class player {
 public:
  /// `known`: knowledge of earlier runs.
  player(const cell& c, std::string policy, const weather& w, std::uint64_t seed,
         std::optional<recollection> known = {})
      : cell_(c),
        known_(std::move(known)),
        true_s_(c.true_s),
        policy_(std::move(policy)),
        weather_(w),
        seed_(seed),
        random_(seed ^ 0x9e3779b9u),
        steps_({}, 0, c.num_ranks) {
    steps_.expect(c.expected_merges);
    if (w.trap_among > 0) set_trap();
  }

  double call() {
    const double began_s = now_s_;
    if (steps_.begin_call()) {
      steps_.begin_steps(now_s_);
      const merge_time merges = merge_steps();
      steps_.end_steps(now_s_ + merges.charged_s);
      now_s_ += merges.adds_s;
    }
    select::timed_call c = steps_.next_call(cell_.key);
    if (c.needs_first_plan) {
      now_s_ += cell_.first_plan_s;
      const auto make = [this](const std::vector<select::arm_prior>& priors) {
        return select::make_policy(
            policy_,
            {.priors = priors, .seed = seed_, .all_wait = select::waits_for_all(cell_.key.op)});
      };
      auto chosen = make(cell_.priors);
      if (known_)
        chosen = std::make_unique<knowledge::recalling_policy>(
            make(recalled(cell_, *known_)), [make, &c = cell_] { return make(c.priors); });
      steps_.adopt(c.context, steps_.lead(c.context, std::move(chosen)));
      c = steps_.next_call(cell_.key);
    }
    const double seconds =
        true_s_.at(c.arm) * (std::exchange(is_first_, false) ? weather_.first_call : 1);
    if (c.timed) steps_.record(c, measured(seconds));
    before_s_ = seconds;
    last_arm_ = c.arm;
    now_s_ += seconds;
    return now_s_ - began_s;
  }

  /// The knowledge of this run, which ends.
  knowledge::experience learnt() {
    steps_.conclude_alone();
    knowledge::experience result{.of = problem_of(cell_)};
    const std::vector<arm> all = arms_of(cell_.key.op);
    for (const select::arm_record& r : steps_.records(0)) {
      if (r.some_s.empty()) continue;
      result.arms.push_back(
          {.arm = name_of(all[std::size_t(r.arm)]), .calls = r.calls, .times = times_of(r)});
    }
    return result;
  }

  int last_arm() const { return last_arm_; }
  int arm_in_use() const { return steps_.incumbent(0); }
  void set_true_s(int arm, double seconds) { true_s_[arm] = seconds; }
  double true_s(int arm) const { return true_s_.at(arm); }
  double best_s() const {
    double best = true_s_.at(select::native_arm);
    for (const auto& [number, seconds] : true_s_) best = std::min(best, seconds);
    return best;
  }
  select::random_stream& random() { return random_; }

 private:
  /// Makes the due steps of a merge; returns the cost of the merges that end with these steps.
  merge_time merge_steps() {
    merge_time all;
    bool begins = false;
    while (steps_.due() != select::merge_step::none) {
      begins = begins || steps_.due() == select::merge_step::post;
      if (steps_.step_alone())
        all.add(std::exchange(begins, false) ? cell_.merge_at_once : cell_.merge);
    }
    return all;
  }

  void set_trap() {
    std::vector<select::arm_prior> tempting;
    for (const select::arm_prior& p : cell_.priors)
      if (!p.native && true_s_.at(p.arm) > cell_.best_s) tempting.push_back(p);
    std::stable_sort(tempting.begin(), tempting.end(),
                     [](const auto& a, const auto& b) { return a.log_seconds < b.log_seconds; });
    if (tempting.empty()) return;
    const select::arm_prior& chosen =
        tempting[std::size_t(random_.below(int(std::min(weather_.trap_among, tempting.size()))))];
    true_s_[chosen.arm] = 30 * std::exp(chosen.log_seconds);
  }

  double measured(double seconds) {
    const weather& w = weather_;
    double t = seconds * std::exp(w.jitter * random_.normal() - 0.5 * w.jitter * w.jitter);
    if (random_.uniform() < w.slow_share)
      t *= w.all_slowest ? 50 : 2 * std::pow(25.0, random_.uniform());
    return with_late_ranks(t - w.lateness * cell_.best_s * std::log(random_.uniform()));
  }

  /// The leader's measurement of a call that takes `seconds` after the last rank has come.
  double with_late_ranks(double seconds) {
    if (weather_.apart <= 0) return seconds;
    double in_the_mean = 0;  // of the last one's lateness beyond the first one's, in their mean
    for (int r = 1; r < cell_.num_ranks; ++r) in_the_mean += 1.0 / r;
    const double mean_s = weather_.apart * cell_.best_s / in_the_mean;
    const auto comes_s = [&] { return -mean_s * std::log(random_.uniform()); };
    const double root_s = comes_s();
    double first_s = root_s, last_s = root_s;
    for (int r = 1; r < cell_.num_ranks; ++r) {
      const double s = comes_s();
      first_s = std::min(first_s, s);
      last_s = std::max(last_s, s);
    }
    // Ranks wait for the root, the root for the last one, or all for the last one.
    const collective op = cell_.key.op;
    const promise what = describe(op).what;
    const bool from_root = what == promise::root_to_all || what == promise::root_to_blocks;
    const double awaited_s = from_root ? root_s : last_s;
    const double waits_from_s = traits_of(op).rooted && !from_root ? root_s : first_s;
    const double longest_s = seconds + awaited_s - waits_from_s;
    // Some may leave when half is done.
    const select::call_times times{.longest_s = longest_s,
                                   .shortest_s = seconds / 2,
                                   .longest_gap_s = last_s,
                                   .shortest_gap_s = first_s};
    lateness_.learn(times, before_s_);
    return select::duration_s(select::waiting_in(op), times, true,
                              lateness_.finishing_s(before_s_));
  }

  const cell& cell_;
  std::optional<recollection> known_;
  std::map<int, double> true_s_;
  std::string policy_;
  weather weather_;
  std::uint64_t seed_;
  select::random_stream random_;
  select::lockstep steps_;
  double now_s_ = 0;     // what all calls so far took
  double before_s_ = 0;  // the last call
  select::usual_lateness lateness_;
  int last_arm_ = select::native_arm;
  bool is_first_ = true;
};

void add_results(const cell& c, const std::string& policy, const std::string& label, int seeds,
                 const weather& w, ordered_json& results) {
  std::map<int, std::vector<double>> totals;
  for (int seed = 1; seed <= seeds; ++seed) {
    player one(c, policy, w, std::uint64_t(seed));
    double total_s = 0;
    int made = 0;
    for (const int calls : checkpoints) {
      for (; made < calls; ++made) total_s += one.call();
      totals[calls].push_back(total_s);
    }
  }
  for (auto& [calls, of_seed] : totals) {
    double sum = 0;
    for (const double t : of_seed) sum += t;
    const double mean = sum / double(of_seed.size()), best = calls * c.best_s;
    std::sort(of_seed.begin(), of_seed.end());
    results.push_back({{"policy", label},
                       {"collective", c.op_name},
                       {"bytes", c.bytes},
                       {"ranks", c.num_ranks},
                       {"calls", calls},
                       {"total_s", mean},
                       {"best_arm_s", best},
                       {"native_s", calls * c.native_s},
                       {"ratio_to_best_arm", mean / best},
                       {"p95", of_seed[(of_seed.size() - 1) * 95 / 100] / best}});
  }
}

enum class change { incumbent_slows, other_improves, all_slow_for_a_while };

/// Calls after the change (or after the end of the slow phase) until 20 calls in a row, except one,
/// are within 2 % of the new best, and until the arm in use is, exploring calls left out; null: too
/// many.
struct recovered {
  ordered_json played, in_use;
};

// Nothing if no arm is fit for the change.
std::optional<recovered> calls_to_recover(const cell& c, const std::string& policy,
                                          const weather& w, change what, std::uint64_t seed) {
  constexpr int before = 1000, most = 3000, window = 20;
  player one(c, policy, w, seed);
  std::map<int, int> played;  // of late
  for (int i = 0; i < before; ++i) {
    one.call();
    if (i >= before - 50) ++played[one.last_arm()];
  }
  const int incumbent =
      std::max_element(played.begin(), played.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  if (what == change::incumbent_slows) {
    one.set_true_s(incumbent, 3 * one.true_s(incumbent));
  } else if (what == change::all_slow_for_a_while) {
    for (const auto& [arm, seconds] : c.true_s) one.set_true_s(arm, 8 * seconds);
    for (int i = 0; i < 30; ++i) one.call();
    for (const auto& [arm, seconds] : c.true_s) one.set_true_s(arm, seconds);
  } else {
    std::vector<int> others;
    for (const auto& [arm, seconds] : c.true_s)
      if (arm != incumbent && seconds <= 2 * c.best_s) others.push_back(arm);
    if (others.empty()) return std::nullopt;
    const auto chosen = std::size_t(one.random().uniform() * double(others.size()));
    one.set_true_s(others[std::min(chosen, others.size() - 1)], c.best_s / 2);
  }
  const double enough_s = 1.02 * one.best_s();
  int good = 0, in_use = 0;
  std::vector<bool> recent(window, false);
  recovered result;
  for (int i = 0; i < most && (result.played.is_null() || result.in_use.is_null()); ++i) {
    one.call();
    const bool now = one.true_s(one.last_arm()) <= enough_s;
    good += int(now) - int(recent[std::size_t(i % window)]);
    recent[std::size_t(i % window)] = now;
    in_use = one.true_s(one.arm_in_use()) <= enough_s ? in_use + 1 : 0;
    const int began = std::max(0, i + 1 - window);
    if (result.played.is_null() && good >= window - 1) result.played = began;
    if (result.in_use.is_null() && in_use >= window) result.in_use = began;
  }
  return result;
}

void add_recovery(const cell& c, const std::string& policy, const std::string& label, int seeds,
                  const weather& w, ordered_json& recovery) {
  for (const auto& [what, name] :
       {std::pair{change::incumbent_slows, "the arm in use slows"},
        std::pair{change::other_improves, "another arm improves"},
        std::pair{change::all_slow_for_a_while, "all 8 times slower for 30 calls"}}) {
    auto calls = ordered_json::array(), in_use = ordered_json::array();
    for (int seed = 1; seed <= seeds; ++seed) {
      std::optional<recovered> r = calls_to_recover(c, policy, w, what, std::uint64_t(seed));
      if (!r) continue;
      calls.push_back(std::move(r->played));
      in_use.push_back(std::move(r->in_use));
    }
    recovery.push_back({{"policy", label},
                        {"change", name},
                        {"collective", c.op_name},
                        {"bytes", c.bytes},
                        {"best_arm_s", c.best_s},
                        {"calls", std::move(calls)},
                        {"calls_in_use", std::move(in_use)}});
  }
}

/// Runs each cell once without noise; returns the time of each call.
ordered_json plain(const profile& p, const ordered_json& cells, const std::string& policy,
                   int calls) {
  auto runs = ordered_json::array();
  for (const ordered_json& j : cells) {
    const cell c = read_cell(&p, j);
    player one(c, policy, {}, 1);
    auto seconds = ordered_json::array();
    for (int i = 0; i < calls; ++i) seconds.push_back(one.call());
    runs.push_back({{"collective", c.op_name}, {"bytes", c.bytes}, {"seconds", seconds}});
  }
  return {{"results", std::move(runs)}};
}

ordered_json changing(const profile& p, const ordered_json& cells, int seeds, double noise,
                      int calls) {
  auto results = ordered_json::array();
  for (const ordered_json& j : cells) {
    const cell c = read_cell(&p, j);
    const std::map<int, double> slow_s = read_times(c.key.op, j.at("slow"));
    for (const auto& [number, seconds] : c.true_s)
      if (!slow_s.contains(number))
        throw error(c.op_name + ": expected the same arms in slow as in arms");
    std::array<double, 3> tuned_s{};
    for (int seed = 1; seed <= seeds; ++seed) {
      player one(c, settings{}.policy, usual(noise), std::uint64_t(seed));
      for (std::size_t part = 0; part < tuned_s.size(); ++part) {
        for (const auto& [number, seconds] : c.true_s)
          one.set_true_s(number, part == 1 ? slow_s.at(number) : seconds);
        for (int i = 0; i < calls; ++i) tuned_s[part] += one.call() / seeds;
      }
    }
    results.push_back({{"collective", c.op_name}, {"bytes", c.bytes}, {"tuned_s", tuned_s}});
  }
  return {{"results", std::move(results)}};
}

/// Runs the default policy repeatedly, each time with the knowledge of earlier runs; returns the
/// times of the first calls of each run, without the first plan.
ordered_json again(const profile* p, const ordered_json& cells, int seeds, double noise, int calls,
                   std::optional<double> first_call = {}) {
  constexpr int runs = 10;
  weather in = usual(noise);
  if (first_call) in.first_call = *first_call;
  auto results = ordered_json::array();
  for (const ordered_json& j : cells) {
    cell c = read_cell(p, j);
    c.first_plan_s = 0;
    if (first_call) {
      c.merge = c.merge_at_once = {};
      c.expected_merges.spread_s = c.expected_merges.at_once_s = 0;
    }
    for (int seed = 1; seed <= seeds; ++seed) {
      std::optional<knowledge::experience> known;
      for (int run = 1; run <= runs; ++run) {
        player one(c, settings{}.policy, in, std::uint64_t(runs * seed + run),
                   known ? std::optional(of_the_same(c, *known)) : std::nullopt);
        double total_s = 0;
        int made = 0;
        while (made < calls) {
          total_s += one.call();
          if (++made != calls && std::ranges::find(checkpoints, made) == std::end(checkpoints))
            continue;
          const double of_one_arm = made - 1 + in.first_call;
          results.push_back({{"run", run},
                             {"collective", c.op_name},
                             {"bytes", c.bytes},
                             {"calls", made},
                             {"ratio_to_best_arm", total_s / (of_one_arm * c.best_s)},
                             {"ratio_to_native", total_s / (of_one_arm * c.native_s)}});
        }
        known = known ? knowledge::joined(*known, one.learnt()) : one.learnt();
      }
    }
  }
  return {{"results", std::move(results)}};
}

/// Measures the cost of wrong knowledge, from the same calls on a different machine: in native
/// calls, beyond native, and beyond the default policy without knowledge.
ordered_json misled(const profile* p, const ordered_json& cells, const ordered_json& others,
                    int seeds, double noise, int calls) {
  auto results = ordered_json::array();
  for (const ordered_json& j : cells) {
    const cell c = read_cell(p, j);
    for (const ordered_json& k : others) {
      if (k.at("collective") != c.op_name || k.at("bytes") != c.bytes) continue;
      const cell other = read_cell(p, k);
      for (int seed = 1; seed <= seeds; ++seed) {
        const auto total_s = [&](player& one) {
          double sum_s = 0;
          for (int i = 0; i < calls; ++i) sum_s += one.call();
          return sum_s;
        };
        player there(other, settings{}.policy, usual(noise), std::uint64_t(seed));
        (void)total_s(there);
        player misled(c, settings{}.policy, usual(noise), std::uint64_t(seed),
                      of_the_same(c, there.learnt())),
            ignorant(c, settings{}.policy, usual(noise), std::uint64_t(seed));
        const double misled_s = total_s(misled);
        results.push_back({{"collective", c.op_name},
                           {"bytes", c.bytes},
                           {"beyond_native", misled_s / c.native_s - calls},
                           {"beyond_ignorant", (misled_s - total_s(ignorant)) / c.native_s}});
      }
    }
  }
  return {{"results", std::move(results)}};
}

/// Knowledge of a different problem, for the arms that both problems have.
std::optional<recollection> from_elsewhere(const cell& c, const cell& other,
                                           const knowledge::experience& known) {
  const double octaves = std::abs(std::log2(double(c.bytes) / double(other.bytes)));
  const bool differs_else = c.op_name != other.op_name || c.num_ranks != other.num_ranks;
  if (octaves > select::most_octaves || differs_else == (octaves > 0)) return std::nullopt;
  recollection r{known, {}, differs_else ? 1 : octaves};
  const std::vector<arm> here = arms_of(c.key.op), there = arms_of(other.key.op);
  for (select::arm_prior p : other.priors)
    for (std::size_t i = 0; i < here.size(); ++i)
      if (name_of(here[i]) == name_of(there[std::size_t(p.arm)])) {
        p.arm = int(i);
        r.predicted_there.push_back(p);
      }
  return r;
}

ordered_json elsewhere(const profile* p, const ordered_json& cells, const ordered_json& others,
                       int seeds, double noise, int calls) {
  auto results = ordered_json::array();
  for (const ordered_json& j : cells) {
    cell c = read_cell(p, j);
    c.first_plan_s = 0;
    for (const ordered_json& k : others) {
      const cell other = read_cell(p, k);
      if (!from_elsewhere(c, other, {})) continue;
      std::map<int, std::array<double, 2>> sums_s;  // by calls; with and without
      for (int seed = 1; seed <= seeds; ++seed) {
        player there(other, settings{}.policy, usual(noise), std::uint64_t(1000 + seed));
        for (int i = 0; i < calls; ++i) there.call();
        player knowing(c, settings{}.policy, usual(noise), std::uint64_t(seed),
                       from_elsewhere(c, other, there.learnt())),
            ignorant(c, settings{}.policy, usual(noise), std::uint64_t(seed));
        std::array<double, 2> total_s{};
        for (int made = 1; made <= calls; ++made) {
          total_s[0] += knowing.call();
          total_s[1] += ignorant.call();
          if (std::ranges::find(checkpoints, made) == std::end(checkpoints)) continue;
          for (std::size_t which : {0, 1}) sums_s[made][which] += total_s[which];
        }
      }
      for (const auto& [made, sum_s] : sums_s) {
        const double best_s = seeds * made * c.best_s;
        results.push_back(
            {{"collective", c.op_name},
             {"bytes", c.bytes},
             {"ranks", c.num_ranks},
             {"from",
              {{"collective", other.op_name}, {"bytes", other.bytes}, {"ranks", other.num_ranks}}},
             {"calls", made},
             {"ratio_to_best_arm", sum_s[0] / best_s},
             {"ignorant", sum_s[1] / best_s}});
      }
    }
  }
  return {{"results", std::move(results)}};
}

ordered_json all_policies(const profile& p, const profile& samples_only, const ordered_json& cells,
                          int seeds, double noise, bool default_only) {
  auto results = ordered_json::array(), recovery = ordered_json::array();
  const std::string standard = settings{}.policy;
  const weather w = usual(noise);
  weather trap = w, tempting_trap = w, outliers = w, late = w;
  trap.trap_among = std::numeric_limits<std::size_t>::max();
  tempting_trap.trap_among = 8;
  outliers.slow_share = 0.05, outliers.all_slowest = true;
  late.apart = 1;
  for (const ordered_json& j : cells) {
    const cell c = read_cell(&p, j);
    for (const select::policy_description& d : select::policies) {
      const std::string name(d.name), label = name == standard ? "default" : name;
      if (default_only && name != standard) continue;
      add_results(c, name, label, seeds, w, results);
      add_recovery(c, name, label, seeds, w, recovery);
    }
    const auto add = [&](const cell& of, const char* label, const weather& in) {
      add_results(of, standard, label, seeds, in, results);
    };
    add(read_cell(&samples_only, j), "default, samples only", w);
    add(read_cell(nullptr, j), "default, no profile", w);
    add(c, "default, an arm 30 times slower than predicted", trap);
    add(c, "default, a trap among the 8 predicted to be the fastest", tempting_trap);
    add(c, "default, 5 % of the calls measured 50 times too slow", outliers);
    add(c, "default, ranks late by as much as a call takes", late);
  }
  return {{"results", std::move(results)}, {"recovery", std::move(recovery)}};
}

int run(std::vector<std::string> a) {
  const bool default_only = !a.empty() && a[0] == "default";
  if (default_only) a.erase(a.begin());
  static const std::map<std::string, std::size_t> words_of{
      {"", 5},    {"plain", 5},  {"changing", 6}, {"again", 6},
      {"few", 7}, {"misled", 7}, {"elsewhere", 7}};
  const std::string verb = !a.empty() && words_of.contains(a[0]) ? a[0] : "";
  if (a.size() != words_of.at(verb))
    throw error(
        "expected [default] PROFILE SAMPLES_ONLY CELLS SEEDS NOISE, plain PROFILE CELLS POLICY "
        "CALLS, changing|again PROFILE CELLS SEEDS NOISE CALLS, few PROFILE CELLS SEEDS NOISE "
        "CALLS FIRST or misled|elsewhere PROFILE CELLS OTHER_CELLS SEEDS NOISE CALLS");
  const std::string& file = a[verb.empty() ? 0 : 1];
  const std::optional<profile> known =
      file == "-" ? std::nullopt : std::optional(files::read_profile(file));
  if (!known && verb != "again" && verb != "few" && verb != "misled" && verb != "elsewhere")
    throw error(verb + ": expected a profile");
  const profile* const p = known ? &*known : nullptr;
  const ordered_json input = ordered_json::parse(files::read_text(a[2])), cells = input.at("cells");
  ordered_json output;
  if (verb == "plain") {
    output = plain(*p, cells, a[3], std::stoi(a[4]));
  } else if (verb == "changing") {
    output = changing(*p, cells, std::stoi(a[3]), std::stod(a[4]), std::stoi(a[5]));
  } else if (verb == "again") {
    output = again(p, cells, std::stoi(a[3]), std::stod(a[4]), std::stoi(a[5]));
  } else if (verb == "few") {
    output = again(p, cells, std::stoi(a[3]), std::stod(a[4]), std::stoi(a[5]), std::stod(a[6]));
  } else if (verb == "misled" || verb == "elsewhere") {
    const ordered_json others = ordered_json::parse(files::read_text(a[3])).at("cells");
    const auto play = verb == "misled" ? misled : elsewhere;
    output = play(p, cells, others, std::stoi(a[4]), std::stod(a[5]), std::stoi(a[6]));
  } else {
    const profile samples_only = files::read_profile(a[1]);
    output = all_policies(*p, samples_only, cells, std::stoi(a[3]), std::stod(a[4]), default_only);
  }
  std::cout << output.dump() << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& problem) {
    std::cerr << "regret_replay: " << problem.what() << '\n';
    return 1;
  }
}
