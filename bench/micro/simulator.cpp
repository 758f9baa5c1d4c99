// SPDX-License-Identifier: BSL-1.0
//
// What a prediction by simulation costs: 64 ranks, 1 MiB in 8 KiB segments, every algorithm with a
// segment size; about 8000 messages each.
#include "models/simulator.hpp"

#include "collectives/registry.hpp"

#include <benchmark/benchmark.h>

#include <string>

namespace {

using namespace railpass;

machine_model cluster() {
  machine_model m;
  m.same_node.pieces = {{0, 0.3e-6, 0.1e-6, 0.2e-6, 0.2e-6, 0.1e-9}};
  m.across_nodes.pieces = {{0, 12e-6, 1e-6, 2e-6, 1.5e-6, 1e-9}};
  return m;
}

void simulate(benchmark::State& state, const arm& a, std::int32_t p, std::int64_t bytes) {
  const machine_model m = cluster();
  const auto nodes = node_layout::blocks(p, 4);
  std::vector<schedule> all;
  for (std::int32_t r = 0; r < p; ++r)
    all.push_back(a.base->build({.rank = r, .num_ranks = p, .commutative = true}, a.values));
  simulator s;
  std::int64_t messages = 0;
  for (auto _ : state)
    messages +=
        s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {bytes, 1}}).messages;
  state.counters["per_message"] = benchmark::Counter(
      double(messages), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

const bool registered = [] {
  for (const algorithm* a : all_algorithms) {
    arm one = default_arm(*a);
    if (a->is_native()) continue;
    for (int i = 0; i < a->num_parameters(); ++i)
      if (a->parameter_list[std::size_t(i)].in_bytes) one.values[std::size_t(i)] = 8 << 10;
    benchmark::RegisterBenchmark(
        (std::string(name_of(a->op)) + ':' + name_of(one)).c_str(),
        [one](benchmark::State& state) { simulate(state, one, 64, 1 << 20); })
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
