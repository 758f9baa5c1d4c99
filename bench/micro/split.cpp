// SPDX-License-Identifier: BSL-1.0
//
// What deciding costs: the split of a large message, and where a small one goes.
#include "railpass/transport/strategies.hpp"

#include <benchmark/benchmark.h>

namespace {

using namespace railpass::transport;

struct machine {
  std::vector<transfer_time> times;
  std::vector<rail_outlook> outlooks;
  explicit machine(std::size_t rails) {
    for (std::size_t i = 0; i < rails; ++i)
      times.emplace_back(2e-5 + 1e-6 * double(i), 5e7 / double(1 + 3 * i));
    for (const transfer_time& t : times) outlooks.push_back({&t, 1e-4 * double(outlooks.size())});
  }
};

void split_a_message(benchmark::State& state) {
  const machine m(std::size_t(state.range(0)));
  std::int64_t shares[most_rails] = {};
  std::int64_t bytes = 1 << 20;
  for (auto _ : state) {
    bytes = (bytes + 4096) % (1 << 21) + (1 << 19);
    benchmark::DoNotOptimize(split(m.outlooks, bytes, 8192, shares));
  }
}
BENCHMARK(split_a_message)->Arg(2)->Arg(4)->Arg(8);

void place_a_small_message(benchmark::State& state) {
  const machine m(std::size_t(state.range(0)));
  const auto how = make_strategy("auto");
  const std::int64_t sizes[] = {48};
  const rails_view view{m.outlooks, 8192};
  for (auto _ : state) benchmark::DoNotOptimize(how->small(0, view, sizes));
}
BENCHMARK(place_a_small_message)->Arg(2)->Arg(4);

}  // namespace
