// SPDX-License-Identifier: BSL-1.0
//
// Plays every policy on recorded times of arms: the library's own priors, policies and lockstep,
// with noise on each call. bench/regret runs it.
//
//     regret_replay PROFILE CELLS SEEDS NOISE   writes {"results": [...]} to standard output
//     regret_replay PROFILE CELLS plain POLICY CALLS
//         one run without noise: the time of each call, to be compared with a live one
//
// CELLS: {"cells": [{"collective", "bytes", "ranks", "ranks_per_node", "merge_s",
// "arms": [{"arm", "seconds"}]}]}. Times are totals of what the played arms take without their
// noise, plus merges; noise only misleads the policies. p95 is over the seeds.
#include "lib/files/files.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/select/plan.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/prior.hpp"
#include "railpass/select/random.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace railpass;
using nlohmann::ordered_json;

constexpr int checkpoints[] = {30, 100, 1000, 10000};

struct cell {
  std::string op_name;
  std::int64_t bytes = 0;
  int num_ranks = 0;
  select::context_key key;
  std::map<int, double> true_s;  // by arm
  std::vector<select::arm_prior> priors;
  double merge_s = 0, best_s = 0, native_s = 0;
};

cell read_cell(const profile& p, const ordered_json& j) {
  cell c;
  c.op_name = j.at("collective");
  c.bytes = j.at("bytes");
  c.num_ranks = j.at("ranks");
  c.merge_s = j.at("merge_s");
  const auto op = find_collective(c.op_name);
  if (!op) throw error("there is no collective '" + c.op_name + "'");
  c.key = {.op = *op, .size_class = select::size_class_of(c.bytes)};
  const promise_traits traits = traits_of(*op);
  if (traits.reduces) c.key.operation = select::operation_class::builtin;
  const std::vector<arm> all = arms_of(*op);
  for (const ordered_json& a : j.at("arms")) {
    const std::string name = a.at("arm");
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (name_of(all[i]) != name) continue;
      c.true_s[int(i)] = a.at("seconds");
      c.priors.push_back(select::prior_of(all[i], int(i),
                                          {.machine = p.machine,
                                           .knowledge = &p,
                                           .key = c.key,
                                           .num_ranks = c.num_ranks,
                                           .ranks_per_node = j.at("ranks_per_node"),
                                           .unit_bytes = traits.reduces ? 8.0 : 1.0,
                                           .bytes = double(c.bytes)}));
    }
  }
  if (!c.true_s.contains(select::native_arm)) throw error(c.op_name + ": native is not recorded");
  c.native_s = c.best_s = c.true_s.at(select::native_arm);
  for (const auto& [number, seconds] : c.true_s) c.best_s = std::min(c.best_s, seconds);
  return c;
}

/// What one communicator's calls take; alone, so that a reduction changes nothing.
class player {
 public:
  player(const cell& c, std::string policy, double noise, std::uint64_t seed)
      : cell_(c),
        policy_(std::move(policy)),
        noise_(noise),
        seed_(seed),
        random_(seed ^ 0x9e3779b9u),
        steps_({.initial_merge_cost_s = c.merge_s}, true) {}

  double call() {
    double extra_s = 0;
    if (steps_.begin_call()) {
      for (select::merge_step s; (s = steps_.due()) != select::merge_step::none;) {
        if (s == select::merge_step::post) {
          (void)steps_.post();
        } else {
          steps_.consume();
          extra_s += cell_.merge_s;
        }
      }
      steps_.charge_merge(extra_s);
    }
    select::timed_call c = steps_.next_call(cell_.key);
    if (c.needs_first_plan) {
      steps_.adopt(c.context,
                   steps_.lead(c.context, select::make_policy(
                                              policy_, {.priors = cell_.priors, .seed = seed_})));
      c = steps_.next_call(cell_.key);
    }
    const double seconds = cell_.true_s.at(c.arm);
    if (c.timed) steps_.record(c, measured(seconds));
    return seconds + extra_s;
  }

 private:
  /// Jitter, one call in a hundred up to 50 times too slow, and ranks that come late.
  double measured(double seconds) {
    if (noise_ == 0) return seconds;
    double t = seconds * std::exp(noise_ * random_.normal() - 0.5 * noise_ * noise_);
    if (random_.uniform() < 0.01) t *= 2 * std::pow(25.0, random_.uniform());
    return t - noise_ * cell_.best_s * std::log(random_.uniform());
  }

  const cell& cell_;
  std::string policy_;
  double noise_;
  std::uint64_t seed_;
  select::random_stream random_;
  select::lockstep steps_;
};

void add_results(const cell& c, const std::string& policy, const std::string& label, int seeds,
                 double noise, ordered_json& results) {
  std::map<int, std::vector<double>> totals;
  for (int seed = 1; seed <= seeds; ++seed) {
    player one(c, policy, noise, std::uint64_t(seed));
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

int run(int argc, char** argv) {
  if (argc < 5) throw error("expected PROFILE CELLS SEEDS NOISE");
  const profile p = files::read_profile(argv[1]);
  const auto input = ordered_json::parse(files::read_text(argv[2]));
  const std::string standard = settings{}.policy;
  auto results = ordered_json::array();
  const bool plain = std::string(argv[3]) == "plain";
  for (const ordered_json& j : input.at("cells")) {
    const cell c = read_cell(p, j);
    if (plain) {
      player one(c, argv[4], 0, 1);
      auto seconds = ordered_json::array();
      for (int i = 0; i < std::atoi(argv[5]); ++i) seconds.push_back(one.call());
      results.push_back({{"collective", c.op_name}, {"bytes", c.bytes}, {"seconds", seconds}});
      continue;
    }
    for (const select::policy_description& d : select::policies) {
      const std::string name(d.name);
      add_results(c, name, name == standard ? "default" : name, std::atoi(argv[3]),
                  std::atof(argv[4]), results);
    }
  }
  std::cout << ordered_json{{"results", std::move(results)}}.dump() << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& problem) {
    std::cerr << "regret_replay: " << problem.what() << '\n';
    return 1;
  }
}
