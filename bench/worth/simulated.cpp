// SPDX-License-Identifier: BSL-1.0
//
// Whether the summary's verdict holds, in simulation: ranks with clocks of their own compute and
// call collectives, once by native alone and once tuned, with the same computing and the same
// noise. The difference of the two runs' ends is what tuning was worth, and is compared with what
// the statistics say.
//
//     worth_simulated [SEEDS [PROGRAM]]
//
// One line per program: verdicts, what was saved and what is claimed (means over the seeds), in how
// many runs the 95 % interval holds it, wrong signs among the definite verdicts, and the end of the
// tuned run in that of the best arm alone.
#include "lib/session/arm_statistics.hpp"
#include "railpass/select/lockstep.hpp"
#include "railpass/select/policies/knowledge_gradient.hpp"
#include "railpass/select/random.hpp"
#include "railpass/select/summary.hpp"
#include "support/merge_mail.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::select;

namespace {

constexpr int num_ranks = 8, num_arms = 3, num_rounds = 4000;
constexpr double us = 1e-6;
constexpr std::array<double, num_arms> predicted_us{100, 90, 140};  // native has no prediction
using clocks = std::array<double, num_ranks>;

/// A collective moves the ranks' clocks on, from their comings to their leavings.
struct operation {
  collective op;
  std::function<void(int arm, int round, clocks& now, double noise)> run;
};
struct program {
  std::string name;
  std::vector<operation> calls;                                        // of each round
  std::function<double(int rank, random_stream& random)> compute_s{};  // before them
};

using arm_times = std::array<double, num_arms>;

operation all_wait(std::function<double(int arm, int round)> taken_us) {
  return {collective::all_reduce, [=](int arm, int round, clocks& now, double noise) {
            const double last = *std::ranges::max_element(now);
            now.fill(last + taken_us(arm, round) * us * noise);
          }};
}
operation all_wait(arm_times taken_us) {
  return all_wait([=](int arm, int) { return taken_us[std::size_t(arm)]; });
}
/// The root, rank 0, leaves after its part, and the last leaf has the data so long after it came.
operation broadcast(arm_times root_us, arm_times leaf_us) {
  return {collective::broadcast, [=](int arm, int, clocks& now, double noise) {
            const double came = now[0], unit = us * noise;
            for (int r = 1; r < num_ranks; ++r) {
              double& t = now[std::size_t(r)];
              t = std::max(t, came + leaf_us[std::size_t(arm)] * unit * (1 + r) / num_ranks);
            }
            now[0] = came + root_us[std::size_t(arm)] * unit;
          }};
}
/// The leaves leave after their part, the root so long after the last one came.
operation reduce(arm_times root_us, arm_times leaf_us) {
  return {collective::reduce, [=](int arm, int, clocks& now, double noise) {
            const double unit = us * noise;
            const double last = *std::ranges::max_element(now);
            for (double& t : now) t += leaf_us[std::size_t(arm)] * unit;
            now[0] = last + root_us[std::size_t(arm)] * unit;
          }};
}

auto always(double seconds) {
  return [=](int, random_stream&) { return seconds; };
}
auto at_random(double mean_s) {
  return [=](int, random_stream& random) { return -mean_s * std::log(random.uniform()); };
}
auto late_rank(int which, double late_s, double others_s) {
  return [=](int rank, random_stream&) { return rank == which ? late_s : others_s; };
}

std::vector<program> programs() {
  const arm_times same{100, 100, 100}, faster{100, 80, 130};
  return {
      {"all_reduce as fast, no computing", {all_wait(same)}, always(0)},
      {"all_reduce as fast, random computing", {all_wait(same)}, at_random(300 * us)},
      {"all_reduce 20 % faster, no computing", {all_wait(faster)}, always(0)},
      {"all_reduce 20 % faster, equal computing", {all_wait(faster)}, always(300 * us)},
      {"all_reduce 20 % faster, random computing", {all_wait(faster)}, at_random(300 * us)},
      {"all_reduce 20 % faster, one rank late", {all_wait(faster)}, late_rank(7, 500 * us, 0)},
      {"all_reduce 20 % faster, rare delays",
       {all_wait(faster)},
       [](int, random_stream& r) { return 100 * us + (r.uniform() < 0.02 ? 3000 * us : 0); }},
      {"all_reduce 20 % faster, four times as slow by the end",
       {all_wait([=](int a, int round) {
         return faster[std::size_t(a)] * (1 + 3.0 * round / num_rounds);
       })},
       always(100 * us)},
      {"all_reduce 20 % faster, later 25 % slower",
       {all_wait([=](int a, int round) {
         return a == 1 && round >= num_rounds / 2 ? 125 : faster[std::size_t(a)];
       })},
       always(100 * us)},
      {"all_reduce, native in bursts",
       {all_wait([](int a, int round) {
         return a == 0 ? (round % 1000 < 100 ? 1000 : 100) : a == 1 ? 110 : 130;
       })},
       always(100 * us)},
      {"broadcast alone", {broadcast({20, 20, 40}, {100, 80, 200})}, always(0)},
      {"broadcast, random computing",
       {broadcast({20, 20, 40}, {100, 80, 200})},
       at_random(300 * us)},
      {"broadcast, root critical, native good",
       {broadcast({20, 90, 40}, {100, 90, 200})},
       late_rank(0, 500 * us, 300 * us)},
      {"broadcast, root critical, native bad",
       {broadcast({100, 20, 200}, {100, 120, 200})},
       late_rank(0, 500 * us, 300 * us)},
      {"broadcast, leaves critical",
       {broadcast({20, 90, 40}, {100, 90, 200})},
       late_rank(0, 100 * us, 500 * us)},
      {"reduce, root early", {reduce({100, 60, 200}, {5, 5, 10})}, late_rank(0, 0, 500 * us)},
      {"reduce, leaves critical",
       {reduce({100, 60, 200}, {5, 40, 10})},
       late_rank(0, 50 * us, 500 * us)},
      {"reduce and broadcast, random computing",
       {reduce({100, 80, 200}, {5, 5, 10}), broadcast({20, 20, 40}, {100, 80, 200})},
       at_random(300 * us)},
      {"broadcast hidden behind computing, then all_reduce",
       {broadcast({20, 20, 40}, {200, 100, 400}), all_wait(same)},
       late_rank(0, 800 * us, 100 * us)},
  };
}

/// The ranks' locksteps: which arm a call takes, and the statistics at the end.
class tuner {
 public:
  tuner(const std::vector<operation>& calls, std::uint64_t seed) : calls_(calls), seed_(seed) {
    for (int r = 0; r < num_ranks; ++r) ranks_.emplace_back(lockstep_settings{}, r, num_ranks);
    ranks_[0].expect({.spread_s = 8 * us, .at_once_s = 30 * us}, 200 * us);
  }

  int begin(const operation& call, clocks& now) {
    std::array<bool, num_ranks> due{};
    for (std::size_t r = 0; r < num_ranks; ++r) {
      due[r] = ranks_[r].begin_call();
      if (due[r]) ranks_[r].begin_steps(now[r]);
    }
    mail_.make_steps(ranks_, [](int, merge_outcome) {});
    for (std::size_t r = 0; r < num_ranks; ++r) {
      if (due[r]) {
        now[r] += 2 * us;
        ranks_[r].end_steps(now[r]);
      }
    }
    const context_key key{.op = call.op, .size_class = 16};
    for (std::size_t r = 0; r < num_ranks; ++r) {
      timed_[r] = ranks_[r].next_call(key);
      if (!timed_[r].needs_first_plan) continue;
      if (r == 0) first_plan_ = ranks_[0].lead(timed_[0].context, policy_of(call.op));
      ranks_[r].adopt(timed_[r].context, first_plan_);
      timed_[r] = ranks_[r].next_call(key);
    }
    began_ = now;
    return timed_[0].arm;
  }
  void end(const clocks& now) {
    for (std::size_t r = 0; r < num_ranks; ++r) {
      if (timed_[r].timed)
        ranks_[r].record(timed_[r], now[r] - began_[r], ranks_[r].gap_s(timed_[r], began_[r]));
      if (timed_[r].notes_end) ranks_[r].note_end(timed_[r], now[r]);
    }
  }

  statistics_dump dump() const {
    statistics_dump all{.merges = ranks_[0].merges(), .merge_cost_s = ranks_[0].merges_cost_s()};
    all.machine_id.cores_per_host = num_ranks;
    for (int i = 0; i < ranks_[0].num_contexts(); ++i) {
      context_statistics c{.collective = std::string(name_of(calls_[std::size_t(i)].op)),
                           .num_ranks = num_ranks,
                           .ranks_per_node = num_ranks,
                           .own_s = 0};
      add_arms(
          ranks_[0], i,
          [](int arm) { return arm == 0 ? std::string("native") : "arm" + std::to_string(arm); },
          c);
      all.contexts.push_back(std::move(c));
    }
    return all;
  }

 private:
  std::unique_ptr<policy> policy_of(collective op) const {
    std::vector<arm_prior> priors{{.arm = 0, .native = true, .measured_only = true}};
    for (int a = 1; a < num_arms; ++a)
      priors.push_back(
          {.arm = a, .log_seconds = std::log(predicted_us[std::size_t(a)] * us), .family = a});
    return std::make_unique<knowledge_gradient_policy>(policy_input{
        .priors = priors, .seed = seed_, .all_wait = waits_for_all(op), .says_worth = true});
  }

  const std::vector<operation>& calls_;
  std::uint64_t seed_;
  std::vector<lockstep> ranks_;
  test::merge_mail mail_{num_ranks};
  plan_message first_plan_{};
  std::array<timed_call, num_ranks> timed_{};
  clocks began_{};
};

/// The end of the run; by `arm` alone if there is no tuner.
double end_s(const program& p, std::uint64_t seed, int arm, tuner* tuned) {
  random_stream computing(2 * seed), noise(2 * seed + 1);
  clocks now{};
  for (int round = 0; round < num_rounds; ++round) {
    for (int r = 0; r < num_ranks; ++r) now[std::size_t(r)] += p.compute_s(r, computing);
    for (const operation& call : p.calls) {
      std::array<double, num_arms> factor{};  // drawn alike whatever runs
      for (double& f : factor) {
        f = std::exp(0.05 * noise.normal());
        const double slow = noise.uniform(), how = noise.uniform();
        if (slow < 0.01) f *= 1 + 4 * how;
      }
      const int runs = tuned ? tuned->begin(call, now) : arm;
      call.run(runs, round, now, factor[std::size_t(runs)]);
      if (tuned) tuned->end(now);
    }
  }
  return *std::ranges::max_element(now);
}

void play(const program& p, int seeds) {
  int faster = 0, slower = 0, holds = 0, wrong = 0;
  double saved = 0, claimed = 0, to_best = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    tuner ranks(p.calls, std::uint64_t(seed));
    const double tuned_s = end_s(p, std::uint64_t(seed), 0, &ranks),
                 native_s = end_s(p, std::uint64_t(seed), 0, nullptr);
    double best_s = native_s;
    for (int arm = 1; arm < num_arms; ++arm)
      best_s = std::min(best_s, end_s(p, std::uint64_t(seed), arm, nullptr));
    const statistics_dump dump = ranks.dump();
    const worth said = worth_of(dump);
    const double truth_s = native_s - tuned_s;
    saved += truth_s / seeds;
    claimed += said.saved_s / seeds;
    to_best += tuned_s / best_s / seeds;
    if (said.unknown > 0) {  // then the summary says that it is not all
      ++holds;
      continue;
    }
    holds += said.least_s <= truth_s && truth_s <= said.most_s;
    faster += said.least_s > 0;
    slower += said.most_s < 0;
    wrong += said.least_s > 0 ? truth_s < 0 : said.most_s < 0 && truth_s > 0;
  }
  std::printf("%-54s %4d %4d %4d | %8.2f %8.2f | %3d %3d | %.3f\n", p.name.c_str(), faster, slower,
              seeds - faster - slower, 1e3 * saved, 1e3 * claimed, holds, wrong, to_best);
}

}  // namespace

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 40;
  const std::string only = argc > 2 ? argv[2] : "";
  std::printf("%-54s %4s %4s %4s | %8s %8s | %3s %3s | %s\n", "of so many runs", "fast", "slow",
              "?", "saved ms", "claimed", "in", "bad", "of the best arm");
  for (const program& p : programs())
    if (p.name.find(only) != std::string::npos) play(p, seeds);
}
