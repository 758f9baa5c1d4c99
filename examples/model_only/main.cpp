// SPDX-License-Identifier: BSL-1.0
//
// railpass without MPI: which broadcast is the fastest on a given machine, by closed forms alone,
// and how the bandit learns where the machine does not behave as its model says.
//
//     g++ -std=c++20 -I include -I . examples/model_only/main.cpp && ./a.out
#include "railpass/base/units.hpp"
#include "railpass/select/belief/prior.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/random.hpp"

#include <cmath>
#include <cstdio>
#include <map>

using namespace railpass;

namespace {

/// Hosts with one gigabit Ethernet card each: 30 us and 117 MB/s between any two.
machine_model gigabit_cluster() {
  machine_model m = select::generic_machine();
  m.across_nodes.pieces = {{.latency_s = 22e-6,
                            .send_overhead_s = 4e-6,
                            .receive_overhead_s = 4e-6,
                            .gap_s = 4e-6,
                            .gap_s_per_byte = 1 / 117e6}};
  return m;
}

double predicted_s(const machine_model& machine, const arm& a, int num_ranks, double bytes) {
  return a.base->cost_s({.machine = machine, .num_ranks = num_ranks, .bytes = bytes}, a.values);
}

/// Where the predicted best arm changes as messages grow.
void print_crossovers(const machine_model& machine, int num_ranks) {
  std::printf("broadcast on %d ranks, one per host: the predicted best arm from each size on\n",
              num_ranks);
  const std::vector<arm> arms = arms_of(collective::broadcast);
  std::string last;
  for (double exponent = 3; exponent <= 24; exponent += 0.25) {
    const double bytes = std::floor(std::exp2(exponent));
    const arm* best = nullptr;
    for (const arm& a : arms)
      if (!a.base->is_native() &&
          eligible(*a.base, {.num_ranks = num_ranks, .units = std::int64_t(bytes)}) &&
          (!best || predicted_s(machine, a, num_ranks, bytes) <
                        predicted_s(machine, *best, num_ranks, bytes)))
        best = &a;
    if (name_of(*best) == last) continue;
    last = name_of(*best);
    std::printf("  %9.0f bytes  %-45s %s\n", bytes, last.c_str(),
                format_seconds(predicted_s(machine, *best, num_ranks, bytes)).c_str());
  }
}

/// The bandit on a machine where every algorithm is off its prediction, 20 % typically.
void learn(const machine_model& machine, int num_ranks, std::int64_t bytes) {
  select::random_stream random(42);
  const std::vector<arm> arms = arms_of(collective::broadcast);
  const profile fitted{.machine = machine};
  const select::prior_query query{
      .machine = machine,
      .knowledge = &fitted,
      .key = {.op = collective::broadcast, .size_class = select::size_class_of(bytes)},
      .num_ranks = num_ranks,
      .bytes = double(bytes)};

  select::policy_input input;
  std::vector<double> true_s(arms.size());
  std::map<int, double> error;  // of each algorithm
  double best_s = 1e9;
  int best = 0;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (!eligible(*arms[i].base, {.num_ranks = num_ranks, .units = bytes})) continue;
    const select::arm_prior prior = select::prior_of(arms[i], int(i), query);
    input.priors.push_back(prior);
    if (!error.contains(prior.family)) error[prior.family] = 0.2 * random.normal();
    true_s[i] = std::exp(prior.log_seconds + error[prior.family] + 0.05 * random.normal());
    // The library's own broadcast, which no model describes: as the binomial tree.
    if (prior.native) {
      const arm tree = parse_arm(collective::broadcast, "binomial");
      true_s[i] = predicted_s(machine, tree, num_ranks, double(bytes));
    }
    if (true_s[i] < best_s) {
      best_s = true_s[i];
      best = int(i);
    }
  }

  std::printf("\n%s to %d ranks: native takes %s, the best arm (%s) %s\n",
              format_bytes(bytes).c_str(), num_ranks, format_seconds(true_s[0]).c_str(),
              name_of(arms[std::size_t(best)]).c_str(), format_seconds(best_s).c_str());
  const auto policy = select::make_policy("knowledge_gradient", std::move(input));
  select::arm_book book;
  std::int64_t calls = 0, shown = 1;
  double lost_s = 0;
  while (calls < 1000) {
    const select::epoch_plan plan = policy->plan({.calls = calls, .merge_cost_s = 50e-6});
    std::vector<select::observation> measured;
    std::size_t next = 0;
    for (int i = 0; i < plan.length && calls < 1000; ++i, ++calls) {
      int chosen = plan.incumbent;
      if (next < plan.explore.size() && plan.explore[next].position == i)
        chosen = plan.explore[next++].arm;
      const double seconds = true_s[std::size_t(chosen)] * std::exp(0.05 * random.normal());
      measured.push_back({chosen, seconds});
      lost_s += true_s[std::size_t(chosen)] - best_s;
      if (calls + 1 == shown) {
        std::printf("  call %4lld  %-40s %-8s so far %.1f %% slower than the best arm always\n",
                    static_cast<long long>(shown), name_of(arms[std::size_t(chosen)]).c_str(),
                    format_seconds(seconds).c_str(), 100 * lost_s / (double(calls + 1) * best_s));
        shown = shown < 10 ? shown + 1 : shown < 100 ? shown + 10 : shown + 100;
      }
    }
    book.add(measured, calls);
    policy->learn(book);
  }
  std::printf("why: %s\n", policy->reason().c_str());
}

}  // namespace

int main() {
  const machine_model machine = gigabit_cluster();
  for (const int num_ranks : {8, 64}) print_crossovers(machine, num_ranks);
  learn(machine, 8, 1 << 20);
}
