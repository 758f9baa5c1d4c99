// SPDX-License-Identifier: BSL-1.0
//
// The learning of Figures 3, 4 and 5 of the PASS poster, redone: policies choose among all arms of
// one context, whose times are those of the simulator with noise. The policies, their priors and
// the lockstep that plans their calls are the library's own. Writes JSON to standard output.
//
//     paper_pass_learning COLLECTIVE RANKS RANKS_PER_NODE BYTES CALLS SEEDS PROFILE...
//
// The machine is that of one profile after the other, for CALLS calls each; the policies know the
// first one only.
#include "lib/files/files.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/predict/predict.hpp"
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

namespace {

using namespace railpass;
using namespace railpass::internal;

// What the poster leaves open: how the times of one arm vary from call to call.
constexpr double noise = 0.1;  // standard deviation of ln(time)
// The MPI library's own collective is taken for what many libraries do by default.
constexpr std::string_view native_stands_for = "binomial",
                           native_stands_for_all_reduce = "reduce_broadcast";

struct context {
  select::context_key key;
  std::vector<arm> arms;                      // by number
  std::vector<std::map<int, double>> true_s;  // of the eligible ones, on each machine
  std::vector<select::arm_prior> priors;
};

context make_context(const std::vector<profile>& machines, const prediction_query& q) {
  context c;
  c.true_s.resize(machines.size());
  const profile& p = machines.front();
  c.key = {.op = q.op, .size_class = select::size_class_of(q.bytes)};
  c.arms = arms_of(q.op);
  simulator sim;
  const node_layout nodes = node_layout::blocks(q.num_ranks, q.ranks_per_node);
  const message_size size{.units = q.bytes / q.unit_bytes, .unit_bytes = q.unit_bytes};
  for (std::size_t i = 0; i < c.arms.size(); ++i) {
    if (!detail::eligible_at(c.arms[i], q)) continue;
    const std::string_view stands_for =
        q.op == collective::all_reduce ? native_stands_for_all_reduce : native_stands_for;
    const arm runs = c.arms[i].base->is_native() ? parse_arm(q.op, stands_for) : c.arms[i];
    for (std::size_t m = 0; m < machines.size(); ++m)
      c.true_s[m][int(i)] = simulate_arm(sim, machines[m].machine, runs, nodes, size).time_s;
    c.priors.push_back(select::prior_of(c.arms[i], int(i),
                                        {.machine = p.machine,
                                         .knowledge = &p,
                                         .key = c.key,
                                         .num_ranks = q.num_ranks,
                                         .ranks_per_node = q.ranks_per_node,
                                         .unit_bytes = double(q.unit_bytes),
                                         .bytes = double(q.bytes)}));
  }
  return c;
}

struct run_result {
  std::vector<double> seconds;  // by call
  int settled = 0;              // the incumbent at the end
};

// One communicator's calls, as every rank makes them; alone, so that a reduction changes nothing.
run_result play(const context& c, const std::string& policy, int calls, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto measured = [&](const std::map<int, double>& true_s, int number) {
    return true_s.at(number) * std::exp(noise * normal(random) - 0.5 * noise * noise);
  };
  select::lockstep steps({});
  run_result result;
  for (int i = 0; i < calls * int(c.true_s.size()); ++i) {
    if (steps.begin_call())
      while (steps.due() != select::merge_step::none) steps.step_alone();
    select::timed_call call = steps.next_call(c.key);
    if (call.needs_first_plan) {
      steps.adopt(call.context,
                  steps.lead(call.context,
                             select::make_policy(policy, {.priors = c.priors, .seed = seed})));
      call = steps.next_call(c.key);
    }
    const double seconds = measured(c.true_s[std::size_t(i / calls)], call.arm);
    if (call.timed) steps.record(call, seconds);
    result.seconds.push_back(seconds);
    result.settled = steps.incumbent(call.context);
  }
  return result;
}

nlohmann::ordered_json learn(const context& c, const std::string& policy, int calls, int seeds) {
  std::vector<std::vector<double>> by_call(static_cast<std::size_t>(calls) * c.true_s.size());
  std::map<std::string, int> settled;
  for (int seed = 1; seed <= seeds; ++seed) {
    const run_result r = play(c, policy, calls, std::uint64_t(seed));
    for (std::size_t i = 0; i < r.seconds.size(); ++i) by_call[i].push_back(r.seconds[i]);
    ++settled[name_of(c.arms[std::size_t(r.settled)])];
  }
  std::vector<double> means, medians;
  for (const std::vector<double>& times : by_call) {
    double sum = 0;
    for (const double t : times) sum += t;
    means.push_back(sum / double(times.size()));
    medians.push_back(median(times));
  }
  return {{"policy", policy}, {"mean_s", means}, {"median_s", medians}, {"settled", settled}};
}

int run(int argc, char** argv) {
  if (argc < 8)
    throw error("expected COLLECTIVE RANKS RANKS_PER_NODE BYTES CALLS SEEDS PROFILE...");
  std::vector<profile> machines;
  for (int i = 7; i < argc; ++i) machines.push_back(files::read_profile(argv[i]));
  const auto op = find_collective(argv[1]);
  const auto bytes = parse_bytes(argv[4]);
  const int calls = std::atoi(argv[5]), seeds = std::atoi(argv[6]);
  const prediction_query q{.op = op.value_or(collective::broadcast),
                           .num_ranks = std::atoi(argv[2]),
                           .ranks_per_node = std::atoi(argv[3]),
                           .bytes = bytes.value_or(0),
                           .unit_bytes = op == collective::all_reduce ? 8 : 1};
  if (!op || q.num_ranks < 2 || q.ranks_per_node < 1 || q.bytes < 8 || calls < 1 || seeds < 1)
    throw error("an argument is not what it should be");
  const context c = make_context(machines, q);
  auto arms = nlohmann::ordered_json::array();
  for (const select::arm_prior& prior : c.priors) {
    auto seconds = nlohmann::ordered_json::array();  // on each machine
    for (const auto& true_s : c.true_s) seconds.push_back(true_s.at(prior.arm));
    arms.push_back({{"arm", name_of(c.arms[std::size_t(prior.arm)])}, {"simulated_s", seconds}});
  }
  const settings standard;
  auto policies = nlohmann::ordered_json::array();
  for (const std::string& policy : {std::string("pass"), standard.policy})
    policies.push_back(learn(c, policy, calls, seeds));
  std::cout << nlohmann::ordered_json{{"arms", arms}, {"policies", policies}}.dump(1) << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& problem) {
    std::cerr << "paper_pass_learning: " << problem.what() << '\n';
    return 1;
  }
}
