// SPDX-License-Identifier: BSL-1.0
//
// Whether the summary's verdict holds, in simulation: ranks with clocks of their own compute and
// call collectives, once by native alone and once tuned, with the same computing and the same
// noise. The difference of the two runs' ends is what tuning was worth, and is compared with what
// the statistics say.
//
//     worth_simulated [SEEDS [PROGRAM]]
//     worth_simulated choices [SEEDS [PROGRAM]]
//     worth_simulated clocks [SEEDS [PROGRAM]]
//
// One line per program: verdicts, what was saved and what is claimed (means over the seeds), in how
// many runs the 95 % interval holds it, wrong signs among the definite verdicts, and the end of the
// tuned run in that of the best arm alone. `choices` judges the arms that are in use at the end,
// each alone in the whole program, by times inside calls and by a clock that all ranks share: how
// many are within 5 % of the best ones. `clocks` does that for calls of 20 us to 1 ms and ranks
// with clocks of their own that are known within 0.5 to 20 us.
#include "lib/tuner/arm_statistics.hpp"
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies/knowledge_gradient.hpp"
#include "railpass/select/policy/random.hpp"
#include "railpass/select/statistics/summary.hpp"
#include "support/merge_mail.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
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
  int root = 0;
};
struct program {
  std::string name;
  std::vector<operation> calls;                                                   // of each round
  std::function<double(int rank, int round, random_stream& random)> compute_s{};  // before them
  bool neighbours_wait = false;  // for each other, after computing
  double length = 1;             // factor of all times
};

/// How ranks measure: by times inside calls only, by one clock, or by clocks of their own, each of
/// which is known within an error.
struct measuring {
  bool shares_clock = false;
  double clock_error_s = 0;
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
/// The root, rank 0, leaves after `root_us`. The last leaf has the data `leaf_us` after the root
/// came.
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
/// The leaves leave after `leaf_us`. The root leaves `root_us` after the last rank came.
operation reduce(arm_times root_us, arm_times leaf_us) {
  return {collective::reduce, [=](int arm, int, clocks& now, double noise) {
            const double unit = us * noise;
            const double last = *std::ranges::max_element(now);
            for (double& t : now) t += leaf_us[std::size_t(arm)] * unit;
            now[0] = last + root_us[std::size_t(arm)] * unit;
          }};
}

auto always(double seconds) {
  return [=](int, int, random_stream&) { return seconds; };
}
auto at_random(double mean_s) {
  return [=](int, int, random_stream& random) { return -mean_s * std::log(random.uniform()); };
}
auto late_rank(int which, double late_s, double others_s) {
  return [=](int rank, int, random_stream&) { return rank == which ? late_s : others_s; };
}
auto in_turns(double late_s) {
  return
      [=](int rank, int round, random_stream&) { return rank == round % num_ranks ? late_s : 0; };
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
       [](int, int, random_stream& r) { return 100 * us + (r.uniform() < 0.02 ? 3000 * us : 0); }},
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
  tuner(const program& p, std::uint64_t seed, const measuring& how = {})
      : calls_(p.calls), seed_(seed), length_(p.length), error_s_(how.clock_error_s) {
    random_stream planted(3 * seed);
    for (std::size_t r = 0; r < num_ranks; ++r) {
      ranks_.emplace_back(lockstep_settings{}, int(r), num_ranks);
      if (how.shares_clock) ranks_[r].share_clock();
      if (error_s_ == 0 || r == 0) continue;
      ahead_s_[r] = 1000 * double(r);
      off_s_[r] = error_s_ * (2 * planted.uniform() - 1);
    }
    ranks_[0].expect({.spread_s = 8 * us, .at_once_s = 30 * us}, 200 * us);
  }

  int begin(const operation& call, clocks& now) {
    std::array<bool, num_ranks> due{};
    for (std::size_t r = 0; r < num_ranks; ++r) {
      if (ranks_[r].awaits_next()) ranks_[r].note_next(shown_s(r, now), dependence_in(call.op));
      due[r] = ranks_[r].begin_call();
      if (due[r]) know_clock(r, now);
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
    call_ = &call;
    return timed_[0].arm;
  }
  int in_use(collective op) const {
    for (int i = 0; i < ranks_[0].num_contexts(); ++i)
      if (context_key::unpacked(ranks_[0].id(i).number).op == op) return ranks_[0].incumbent(i);
    return 0;
  }
  void end(const clocks& now) {
    for (std::size_t r = 0; r < num_ranks; ++r) {
      if (timed_[r].timed)
        ranks_[r].record(timed_[r], now[r] - began_[r], ranks_[r].gap_s(timed_[r], began_[r]));
      if (timed_[r].timed && ranks_[r].shares_clock())
        ranks_[r].await_next(timed_[r], shown_s(r, began_), shown_s(r, now),
                             {dependence_in(call_->op), int(r) == call_->root});
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
  /// By the clock of a rank.
  double shown_s(std::size_t rank, const clocks& now) const { return now[rank] + ahead_s_[rank]; }
  void know_clock(std::size_t rank, const clocks& now) {
    if (ahead_s_[rank] == 0) return;
    const double offset_s = off_s_[rank] - ahead_s_[rank];
    clock_offset known = clock_offset::unknown();
    known.learn(shown_s(rank, now), offset_s - error_s_, offset_s + error_s_);
    ranks_[rank].know_clock(known);
  }
  std::unique_ptr<policy> policy_of(collective op) const {
    std::vector<arm_prior> priors{{.arm = 0, .native = true, .measured_only = true}};
    for (int a = 1; a < num_arms; ++a)
      priors.push_back({.arm = a,
                        .log_seconds = std::log(predicted_us[std::size_t(a)] * length_ * us),
                        .family = a});
    return std::make_unique<knowledge_gradient_policy>(policy_input{
        .priors = priors, .seed = seed_, .all_wait = waits_for_all(op), .says_worth = true});
  }

  const std::vector<operation>& calls_;
  std::uint64_t seed_;
  double length_, error_s_;
  clocks ahead_s_{}, off_s_{};  // of the clocks, and of what is known of that
  std::vector<lockstep> ranks_;
  test::merge_mail mail_;
  plan_message first_plan_{};
  std::array<timed_call, num_ranks> timed_{};
  clocks began_{};
  const operation* call_ = nullptr;
};

void wait_for_neighbours(clocks& now) {
  const clocks came = now;
  for (std::size_t r = 0; r < num_ranks; ++r)
    now[r] = std::max({came[r], came[(r + 1) % num_ranks] + 1.5 * us,
                       came[(r + num_ranks - 1) % num_ranks] + 1.5 * us});
}

/// The end of the run; by these arms alone, one for each call of a round, if there is no tuner.
double end_s(const program& p, std::uint64_t seed, const std::vector<int>& arms, tuner* tuned) {
  random_stream computing(2 * seed), noise(2 * seed + 1);
  clocks now{};
  for (int round = 0; round < num_rounds; ++round) {
    for (int r = 0; r < num_ranks; ++r)
      now[std::size_t(r)] += p.length * p.compute_s(r, round, computing);
    if (p.neighbours_wait) wait_for_neighbours(now);
    for (std::size_t i = 0; i < p.calls.size(); ++i) {
      const operation& call = p.calls[i];
      std::array<double, num_arms> factor{};  // drawn alike whatever runs
      for (double& f : factor) {
        f = std::exp(0.05 * noise.normal());
        const double slow = noise.uniform(), how = noise.uniform();
        if (slow < 0.01) f *= 1 + 4 * how;
      }
      const int runs = tuned ? tuned->begin(call, now) : arms[i];
      call.run(runs, round, now, p.length * factor[std::size_t(runs)]);
      if (tuned) tuned->end(now);
    }
  }
  return *std::ranges::max_element(now);
}

void play(const program& p, int seeds) {
  int faster = 0, slower = 0, holds = 0, wrong = 0;
  double saved = 0, claimed = 0, to_best = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    tuner ranks(p, std::uint64_t(seed));
    const auto alone = [&](int arm) { return std::vector<int>(p.calls.size(), arm); };
    const double tuned_s = end_s(p, std::uint64_t(seed), {}, &ranks),
                 native_s = end_s(p, std::uint64_t(seed), alone(0), nullptr);
    double best_s = native_s;
    for (int arm = 1; arm < num_arms; ++arm)
      best_s = std::min(best_s, end_s(p, std::uint64_t(seed), alone(arm), nullptr));
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

// ---- which arms are chosen

/// From a rank's coming to a rank's leaving, in us; negative: this one does not wait for that one.
using delays_us = std::function<double(int from, int to)>;
using arms_us = std::array<delays_us, num_arms>;

operation by_delays(collective op, arms_us arms, int root = 0) {
  return {op,
          [=](int arm, int, clocks& now, double noise) {
            const clocks came = now;
            for (int to = 0; to < num_ranks; ++to)
              for (int from = 0; from < num_ranks; ++from)
                if (const double delay = arms[std::size_t(arm)](from, to); delay >= 0)
                  now[std::size_t(to)] =
                      std::max(now[std::size_t(to)], came[std::size_t(from)] + delay * us * noise);
          },
          root};
}

delays_us alike(double all) {
  return [=](int, int) { return all; };
}
/// Data go from other ranks to rank 0 in `up`, and from rank 0 to other ranks in `down`.
delays_us by_rank_0(double up, double down) {
  return [=](int from, int to) { return 5 + (from == 0 ? 0 : up) + (to == 0 ? 0 : down); };
}
/// Ranks leave one after the other.
delays_us apart(double first, double last) {
  return [=](int, int to) { return first + (last - first) * to / (num_ranks - 1); };
}
delays_us from_root(double of_root, double of_leaves, int root) {
  return [=](int from, int to) -> double {
    if (from == to) return from == root ? of_root : 1;
    if (from != root) return -1;
    return of_leaves * (1 + (to - root + num_ranks) % num_ranks) / num_ranks;
  };
}
delays_us to_root(double of_root, double of_leaves, int root) {
  return [=](int from, int to) -> double {
    if (to == root) return of_root;
    return from == to ? of_leaves : -1;
  };
}

/// Ranks wait for lower ones.
delays_us from_lower(const delays_us& delays) {
  return [=](int from, int to) { return from <= to ? delays(from, to) : -1; };
}
delays_us chain(double step) {
  return [=](int from, int to) { return 5 + step * (to - from); };
}

/// Programs whose rounds have the same calls, by arms of different kinds.
struct family {
  std::string name;
  std::vector<std::vector<operation>> rounds{};
  bool neighbours_wait = false;
};

std::vector<family> families() {
  using enum collective;
  const std::vector<arms_us> for_all{
      {alike(100), alike(80), alike(130)},
      {alike(100), by_rank_0(55, 55), alike(130)},
      {alike(100), apart(50, 120), alike(90)},
      {apart(60, 100), apart(20, 115), by_rank_0(40, 70)},
  };
  using root_and_leaves = std::array<std::array<double, 2>, num_arms>;
  std::vector<root_and_leaves> rooted{
      {{{20, 100}, {90, 60}, {40, 200}}},
      {{{100, 100}, {20, 120}, {200, 200}}},
      {{{20, 100}, {20, 80}, {40, 200}}},
      {{{60, 60}, {90, 40}, {20, 90}}},
  };
  for (std::size_t i = 0, n = rooted.size(); i < n; ++i) {
    root_and_leaves other = rooted[i];
    for (auto& [of_root, of_leaves] : other) std::swap(of_root, of_leaves);
    rooted.push_back(other);
  }
  const auto down = [](const root_and_leaves& t, int root = 0) {
    arms_us arms;
    for (std::size_t a = 0; a < num_arms; ++a) arms[a] = from_root(t[a][0], t[a][1], root);
    return by_delays(broadcast, arms, root);
  };
  const auto up = [](const root_and_leaves& t) {
    arms_us arms;
    for (std::size_t a = 0; a < num_arms; ++a) arms[a] = to_root(t[a][1], t[a][0], 0);
    return by_delays(reduce, arms);
  };
  const operation meeting = by_delays(all_gather, {alike(50), alike(50), alike(50)});

  std::vector<family> all{{.name = "all_reduce"},
                          {.name = "two all_reduces"},
                          {.name = "all_reduce, neighbours wait", .neighbours_wait = true}};
  for (const arms_us& arms : for_all) {
    const operation one = by_delays(all_reduce, arms);
    all[0].rounds.push_back({one});
    all[1].rounds.push_back({one, one});
    all[2].rounds.push_back({one});
  }
  const auto add = [&](const std::string& name, const auto& calls, bool neighbours_wait = false) {
    family f{.name = name, .neighbours_wait = neighbours_wait};
    for (const root_and_leaves& t : rooted) f.rounds.push_back(calls(t));
    all.push_back(std::move(f));
  };
  using calls = std::vector<operation>;
  add("reduce", [&](const auto& t) { return calls{up(t)}; });
  add("reduce, all_gather", [&](const auto& t) { return calls{up(t), meeting}; });
  add(
      "reduce, neighbours wait", [&](const auto& t) { return calls{up(t)}; }, true);
  add("broadcast, all_gather", [&](const auto& t) { return calls{down(t), meeting}; });
  add("broadcast", [&](const auto& t) { return calls{down(t)}; });
  add(
      "broadcast, neighbours wait", [&](const auto& t) { return calls{down(t)}; }, true);
  add("broadcast, roots in turns", [&](const auto& t) { return calls{down(t), down(t, 3)}; });
  const std::vector<arms_us> for_lower{
      {chain(14), alike(80), alike(130)},
      {alike(100), chain(10), chain(20)},
      {chain(14), apart(50, 120), alike(90)},
      {apart(60, 100), apart(20, 115), chain(16)},
  };
  for (const bool alone : {true, false}) {
    family f{.name = alone ? "scan" : "scan, all_gather"};
    for (arms_us arms : for_lower) {
      for (delays_us& one : arms) one = from_lower(one);
      const operation some = by_delays(scan, arms);
      f.rounds.push_back(alone ? calls{some} : calls{some, meeting});
    }
    all.push_back(std::move(f));
  }
  add("reduce, broadcast", [&](const auto& t) { return calls{up(t), down(t)}; });
  return all;
}

/// Computing of ranks before each round, in lengths of a call.
constexpr std::array lateness_in_calls{0.0, 1.0, 10.0};

std::vector<std::function<double(int, int, random_stream&)>> latenesses(double calls) {
  if (calls == 0) return {always(0)};
  const double late_s = calls * 100 * us;
  return {at_random(late_s), late_rank(0, late_s, 0), late_rank(num_ranks - 1, late_s, 0),
          late_rank(0, 0, late_s), in_turns(late_s)};
}

/// How the arms in use at the end compare with the best ones, each alone in the whole program.
struct judgement {
  int runs = 0, good = 0;
  double excess = 0, most = 0;

  void add(double ratio) {
    constexpr double as_good = 1.05;
    ++runs;
    good += ratio <= as_good ? 1 : 0;
    excess += ratio - 1;
    most = std::max(most, ratio - 1);
  }
  void add(const judgement& others) {
    runs += others.runs;
    good += others.good;
    excess += others.excess;
    most = std::max(most, others.most);
  }
  void print() const {
    std::printf(" | %4d %4d %5.1f %6.1f", good, runs, 1e2 * excess / runs, 1e2 * most);
  }
};

std::vector<collective> collectives_of(const program& p) {
  std::vector<collective> all;
  for (const operation& call : p.calls)
    if (std::ranges::find(all, call.op) == all.end()) all.push_back(call.op);
  return all;
}

/// The arms of a round's calls if the collectives' arms are the digits of `number`.
std::vector<int> arms_by_number(const program& p, int number) {
  const std::vector<collective> all = collectives_of(p);
  std::vector<int> arms;
  for (const operation& call : p.calls) {
    int rest = number;
    for (const collective op : all) {
      if (op == call.op) break;
      rest /= num_arms;
    }
    arms.push_back(rest % num_arms);
  }
  return arms;
}

/// The least end of all choices of arms.
double best_end_s(const program& p, std::uint64_t seed) {
  int choices = 1;
  for (std::size_t i = 0; i < collectives_of(p).size(); ++i) choices *= num_arms;
  double best_s = end_s(p, seed, arms_by_number(p, 0), nullptr);
  for (int c = 1; c < choices; ++c)
    best_s = std::min(best_s, end_s(p, seed, arms_by_number(p, c), nullptr));
  return best_s;
}

/// The end by those arms alone that are in use at the end of a tuned run.
double chosen_end_s(const program& p, std::uint64_t seed, const measuring& how) {
  tuner ranks(p, seed, how);
  end_s(p, seed, {}, &ranks);
  std::vector<int> arms;
  for (const operation& call : p.calls) arms.push_back(ranks.in_use(call.op));
  return end_s(p, seed, arms, nullptr);
}

std::vector<judgement> judge(const family& f, double late_calls, int seeds, double length,
                             const std::vector<measuring>& ways) {
  std::vector<judgement> by_way(ways.size());
  for (const std::vector<operation>& round : f.rounds)
    for (const auto& compute_s : latenesses(late_calls))
      for (int seed = 1; seed <= seeds; ++seed) {
        const program p{f.name, round, compute_s, f.neighbours_wait, length};
        const double best_s = best_end_s(p, std::uint64_t(seed));
        for (std::size_t i = 0; i < ways.size(); ++i)
          by_way[i].add(chosen_end_s(p, std::uint64_t(seed), ways[i]) / best_s);
      }
  return by_way;
}

void judge_choices(const family& f, double late_calls, int seeds) {
  std::printf("%-30s %3.0f", f.name.c_str(), late_calls);
  for (const judgement& j : judge(f, late_calls, seeds, 1, {{}, {.shares_clock = true}})) j.print();
  std::printf("\n");
}

void judge_clocks(const family& f, int seeds) {
  std::vector<measuring> ways{{}, {.shares_clock = true}};
  for (const double error_us : {0.5, 2.0, 5.0, 20.0})
    ways.push_back({.shares_clock = true, .clock_error_s = error_us * us});
  for (const double call_us : {20, 100, 400, 1000}) {
    std::vector<judgement> all(ways.size());
    for (const double late_calls : lateness_in_calls) {
      const auto some = judge(f, late_calls, seeds, call_us / 100, ways);
      for (std::size_t i = 0; i < ways.size(); ++i) all[i].add(some[i]);
    }
    std::printf("%-30s %4.0f", f.name.c_str(), call_us);
    for (const judgement& j : all)
      std::printf(" | %4d %4d %5.1f", j.good, j.runs, 1e2 * j.excess / j.runs);
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "clocks") {
    const int seeds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
    const std::string only = argc > 3 ? argv[3] : "";
    std::printf(
        "%-30s %4s | times inside    | one clock       | within 0.5 us   | 2 us            |"
        " 5 us            | 20 us\n",
        "good, of, % off", "us");
    for (const family& f : families())
      if (f.name.find(only) != std::string::npos) judge_clocks(f, seeds);
    return 0;
  }
  if (argc > 1 && std::string(argv[1]) == "choices") {
    const int seeds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 2;
    std::printf("%-30s %3s | %-22s | %-22s\n", "", "", "times inside", "shared clock");
    std::printf("%-30s %3s | %4s %4s %5s %6s | %4s %4s %5s %6s\n", "lateness in calls", "", "good",
                "of", "% off", "most", "good", "of", "% off", "most");
    const std::string only = argc > 3 ? argv[3] : "";
    for (const family& f : families())
      for (const double late_calls : lateness_in_calls)
        if (f.name.find(only) != std::string::npos) judge_choices(f, late_calls, seeds);
    return 0;
  }
  const int seeds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 40;
  const std::string only = argc > 2 ? argv[2] : "";
  std::printf("%-54s %4s %4s %4s | %8s %8s | %3s %3s | %s\n", "of so many runs", "fast", "slow",
              "?", "saved ms", "claimed", "in", "bad", "of the best arm");
  for (const program& p : programs())
    if (p.name.find(only) != std::string::npos) play(p, seeds);
}
