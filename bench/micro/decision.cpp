// SPDX-License-Identifier: BSL-1.0
//
// The cost of choosing: a settled call, learning and planning on rank 0, and a new context's prior.
#include "railpass/select/belief/prior.hpp"
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"

#include <benchmark/benchmark.h>

namespace {

using namespace railpass;
using namespace railpass::select;

context_key key_of(collective op) { return {.op = op, .size_class = 20}; }

std::vector<arm_prior> priors_of(collective op, int num_ranks) {
  const machine_model machine = generic_machine();
  const prior_query query{.machine = machine, .key = key_of(op), .num_ranks = num_ranks};
  std::vector<arm_prior> priors;
  const std::vector<arm> arms = arms_of(op);
  for (std::size_t i = 0; i < arms.size(); ++i)
    if (eligible(*arms[i].base, {.num_ranks = num_ranks, .units = 1 << 20}))
      priors.push_back(prior_of(arms[i], int(i), query));
  return priors;
}

/// A call of one of `contexts` contexts in turn that runs its incumbent; one in 64 is timed.
void settled_call(benchmark::State& state) {
  const auto contexts = static_cast<unsigned>(state.range(0));
  lockstep ls({});
  std::vector<context_key> keys;
  for (unsigned c = 0; c < contexts; ++c) {
    keys.push_back(key_of(collective::broadcast));
    keys.back().size_class = std::uint8_t(c);
    const timed_call first = ls.next_call(keys.back());
    auto chosen = make_policy("native", {.priors = priors_of(collective::broadcast, 8)});
    (void)chosen->plan({.calls = 1000});
    const plan_message message = ls.lead(first.context, std::move(chosen));
    ls.adopt(first.context, message);
  }
  unsigned i = 0;
  for (auto _ : state) {
    // Merges are the session's affair; the queue of samples is full after a while.
    benchmark::DoNotOptimize(ls.begin_call());
    benchmark::DoNotOptimize(ls.next_call(keys[i++ & (contexts - 1)]));
  }
}
BENCHMARK(settled_call)->Arg(1)->Arg(8);

/// One epoch of 16 calls, three of them exploring: what a merge makes rank 0 think.
void learn_and_plan(benchmark::State& state, const char* name) {
  const std::vector<arm_prior> priors = priors_of(collective::broadcast, 64);
  const auto policy = make_policy(name, {.priors = priors});
  arm_book book;
  std::int64_t calls = 0;
  epoch_plan plan = policy->plan({.calls = 0, .merge_cost_s = 1e-5});
  for (auto _ : state) {
    std::vector<observation> merged(13, {plan.incumbent, 1e-3});
    for (std::size_t i = 0; i < 3 && i < plan.explore.size(); ++i)
      merged.push_back({plan.explore[i].arm, 1.1e-3});
    book.add(merged, calls += 16);
    policy->learn(book);
    plan = policy->plan({.calls = calls, .merge_cost_s = 1e-5});
    benchmark::DoNotOptimize(plan);
  }
  state.counters["arms"] = double(priors.size());
}
BENCHMARK_CAPTURE(learn_and_plan, knowledge_gradient, "knowledge_gradient");
BENCHMARK_CAPTURE(learn_and_plan, thompson, "thompson");
BENCHMARK_CAPTURE(learn_and_plan, pass, "pass");

/// The priors of all arms of a new context, and its policy with the first plan.
void new_context(benchmark::State& state, collective op) {
  for (auto _ : state) {
    const auto policy = make_policy("knowledge_gradient", {.priors = priors_of(op, 1024)});
    benchmark::DoNotOptimize(policy->plan({.calls = 0, .merge_cost_s = 1e-5}));
  }
}
BENCHMARK_CAPTURE(new_context, broadcast_1024_ranks, collective::broadcast);
BENCHMARK_CAPTURE(new_context, all_reduce_1024_ranks, collective::all_reduce);

}  // namespace
