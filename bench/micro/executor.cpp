// SPDX-License-Identifier: BSL-1.0
//
// What the executor costs without a network, per step instance: `instant` has a rail on which every
// message ends when it is posted, `polled` one on which it ends at the next poll.
#include "lib/exec/executor.hpp"

#include "collectives/registry.hpp"
#include "lib/exec/schedule_cache.hpp"

#include <benchmark/benchmark.h>

namespace {

using namespace railpass;
using namespace railpass::internal;

struct instant_rail {
  void reserve(std::size_t) {}
  post_result post_send(std::int32_t, std::int32_t, const std::byte*, std::int64_t, rail_token) {
    return post_result::done;
  }
  post_result post_receive(std::int32_t, std::int32_t, std::byte*, std::int64_t, rail_token) {
    return post_result::done;
  }
  int poll(std::span<rail_token>) { return 0; }
  int pending() const { return 0; }
  void give_way() {}
  static constexpr int large_messages_at_once = 1;
  int error_code() const { return 0; }
  void abandon() {}
};

class polled_rail {
 public:
  void reserve(std::size_t) {}
  post_result post_send(std::int32_t, std::int32_t, const std::byte*, std::int64_t,
                        rail_token token) {
    tokens_[std::size_t(pending_++)] = token;
    return post_result::pending;
  }
  post_result post_receive(std::int32_t, std::int32_t, std::byte*, std::int64_t, rail_token token) {
    tokens_[std::size_t(pending_++)] = token;
    return post_result::pending;
  }
  int poll(std::span<rail_token> completed) {
    int n = 0;
    while (std::size_t(n) < completed.size() && pending_ > 0)
      completed[std::size_t(n++)] = tokens_[std::size_t(--pending_)];
    return n;
  }
  int pending() const { return pending_; }
  void give_way() {}
  static constexpr int large_messages_at_once = 1;
  int error_code() const { return 0; }
  void abandon() {}

 private:
  std::array<rail_token, 1024> tokens_{};
  int pending_ = 0;
};

int no_reduce(void*, const std::byte*, std::byte*, std::int64_t) { return 0; }

std::int64_t instances(const schedule& s, const message_size& size) {
  std::int64_t sum = 0;
  for (const step& x : s.steps)
    sum += x.rounds * segments_per_round(x, size.segment_units(s.segment_bytes), size);
  return sum;
}

template <rail R>
void run(benchmark::State& state, collective op, const char* text, shape s, std::int64_t bytes) {
  const arm a = parse_arm(op, text);
  schedule_cache cache;
  const schedule plan = *cache.find_or_build(*a.base, a.values, s);
  std::vector<std::byte> memory(std::size_t(bytes) + 8);
  binding b;
  b.output = memory.data();
  b.input = memory.data();
  b.size = {bytes, 1};
  b.hooks.reduce = no_reduce;
  R rail;
  executor<R> exec(rail);
  for (auto _ : state) benchmark::DoNotOptimize(exec.run(plan, b));
  state.counters["steps"] = double(instances(plan, b.size));
  state.counters["per_step"] = benchmark::Counter(
      double(instances(plan, b.size)),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Binding a schedule of many steps to another size each time.
void rebind(benchmark::State& state) {
  builder steps({.rank = 1, .num_ranks = 1024}, 1024);
  step_id before = no_step;
  for (int i = 0; i < 500; ++i) {
    const block_range block{.parts = 500, .first = i};
    before = steps.receive(buffer::output, block, i % 1000 + 2, {each(before)}, by_segments);
    before = steps.send(buffer::output, block, i % 1000 + 2, {each(before)}, by_segments);
  }
  const schedule plan = steps.finish();
  std::vector<std::byte> memory(1 << 20);
  binding b;
  b.output = memory.data();
  execution e;
  std::int64_t bytes = 1000;
  for (auto _ : state) {
    b.size = {bytes ^= 64, 1};
    e.bind(plan, b, {}, 0, 0);
    benchmark::ClobberMemory();
  }
  state.counters["per_step"] =
      benchmark::Counter(double(plan.steps.size()), benchmark::Counter::kIsIterationInvariantRate |
                                                        benchmark::Counter::kInvert);
}
BENCHMARK(rebind);

void find_schedule(benchmark::State& state) {
  schedule_cache cache;
  const arm a = parse_arm(collective::broadcast, "binomial+segment_bytes=8KiB");
  for (int root = 0; root < state.range(0); ++root)
    cache.find_or_build(*a.base, a.values, {.rank = root, .num_ranks = 256});
  for (auto _ : state)
    benchmark::DoNotOptimize(
        cache.find_or_build(*a.base, a.values, {.rank = 0, .num_ranks = 256}).get());
}
BENCHMARK(find_schedule)->Arg(1)->Arg(128);

void instant(benchmark::State& state, collective op, const char* arm, shape s, std::int64_t bytes) {
  run<instant_rail>(state, op, arm, s, bytes);
}
void polled(benchmark::State& state, collective op, const char* arm, shape s, std::int64_t bytes) {
  run<polled_rail>(state, op, arm, s, bytes);
}
#define RUN(name, op, text, ...)                                             \
  BENCHMARK_CAPTURE(instant, name, collective::op, text, shape __VA_ARGS__); \
  BENCHMARK_CAPTURE(polled, name, collective::op, text, shape __VA_ARGS__)

constexpr std::int64_t one_MiB = 1 << 20;
RUN(pipeline_1MiB_8KiB, broadcast, "pipeline+segment_bytes=8KiB", {3, 8}, one_MiB);
RUN(binomial_root_1MiB_8KiB, broadcast, "binomial+segment_bytes=8KiB", {0, 8}, one_MiB);
RUN(binomial_root_8B, broadcast, "binomial", {0, 8}, 8);
RUN(recursive_doubling_8B, all_reduce, "recursive_doubling", {3, 8}, 8);
RUN(recursive_doubling_64_ranks_8B, all_reduce, "recursive_doubling", {3, 64}, 8);
RUN(ring_1KiB, all_reduce, "ring", {3, 8}, 1024);
RUN(segmented_ring_1MiB_8KiB, all_reduce, "segmented_ring+segment_bytes=8KiB", {3, 8}, one_MiB);
RUN(reduce_scatter_allgather_1KiB, all_reduce, "reduce_scatter_allgather", {3, 8}, 1024);

}  // namespace
