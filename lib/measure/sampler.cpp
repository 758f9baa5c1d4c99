// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/sampler.hpp"

#include "lib/measure/core_share.hpp"
#include "lib/measure/handovers.hpp"
#include "lib/measure/links.hpp"
#include "lib/measure/workload.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace railpass::internal::measure {
namespace {

// Repeats `work` until the clock's resolution no longer matters, and returns the mean time.
double time_of(const std::function<void()>& work) {
  for (int repeat = 1;; repeat *= 4) {
    const double begin_s = steady_clock_s();
    for (int i = 0; i < repeat; ++i) work();
    const double spent_s = steady_clock_s() - begin_s;
    if (spent_s > 20e-6) return spent_s / repeat;
  }
}

void sample_memory(measurements& all, double budget_s, const progress_report& progress) {
  std::vector<double> from(std::size_t(sampled_bytes.back()) / sizeof(double), 1), to(from);
  std::map<std::int64_t, std::vector<double>> copies, reductions;
  const double begin_s = steady_clock_s();
  for (int pass = 0; pass < 20; ++pass)
    for (const std::int64_t bytes : sampled_bytes) {
      const double spent_s = steady_clock_s() - begin_s;
      if (pass > 2 && spent_s > budget_s) break;
      progress(std::max(spent_s / budget_s, pass / 20.0), "copy and reduce");
      if (bytes < std::int64_t(sizeof(double))) continue;
      copies[bytes].push_back(time_of([&] {
        std::memcpy(to.data(), from.data(), std::size_t(bytes));
        asm volatile("" : : "r"(to.data()) : "memory");  // the copy must really happen
      }));
      const int count = int(bytes / std::int64_t(sizeof(double)));
      reductions[bytes].push_back(
          time_of([&] { MPI_Reduce_local(from.data(), to.data(), count, MPI_DOUBLE, MPI_SUM); }));
    }
  for (const auto& [bytes, seconds] : copies)
    all.copies.push_back({bytes, median(without_outliers(seconds))});
  for (const auto& [bytes, seconds] : reductions)
    all.reductions.push_back({bytes, median(without_outliers(seconds))});
}

// Times the MPI library's own collectives on all ranks, because no model predicts these times. A
// call lasts as long as on its slowest rank. Rank 0's clock decides which measurements still run.
void sample_natives(const job& j, std::span<const collective> natives, measurements& all,
                    double budget_s, const progress_report& progress) {
  constexpr std::array<std::int64_t, 10> sizes{8,        64,        512,       4 << 10, 16 << 10,
                                               64 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20};
  constexpr int most_passes = 8, fewest_values = 2;
  std::map<std::pair<collective, std::int64_t>, std::vector<double>> values;
  const double begin_s = steady_clock_s();
  for (int pass = -1; pass < most_passes; ++pass)  // the first pass warms up
    for (const std::int64_t size : sizes)
      for (const collective op : natives) {
        // A table is useful only if sizes select arms, and a barrier has a single size.
        const bool sizeless = describe(op).what == promise::all_arrive;
        if (describe(op).lengths == block_lengths::of_pair || (sizeless && size != sizes[0]))
          continue;
        const std::int64_t bytes = whole_message_bytes(op, size, j.num_ranks);
        std::vector<double>& known = values[{op, bytes}];
        const double spent_s = steady_clock_s() - begin_s;
        const double expected_s = known.empty() ? 0 : known.back();
        // The shortest calls are measured even on a busy machine.
        const bool always = size == sizes[0] && pass < fewest_values;
        if (agreed(always || spent_s + expected_s < budget_s ? 1 : 0) == 0) continue;
        progress(std::max(spent_s / budget_s, double(pass) / most_passes),
                 "native " + std::string(name_of(op)) + ", " + format_bytes(bytes));
        const workload data(j, op, bytes, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        const double call_s = steady_clock_s();
        run_native(data.made_on(MPI_COMM_WORLD));
        const double mine_s = steady_clock_s() - call_s;
        double slowest_s = 0;
        MPI_Reduce(&mine_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (pass < 0 && j.rank == 0) known.assign(1, slowest_s);
        if (pass >= 0) known.push_back(slowest_s);
      }
  if (j.rank != 0) return;
  for (auto& [at, measured] : values) {
    if (measured.size() < fewest_values + 1) continue;
    measured.erase(measured.begin());  // the warm-up
    all.collectives.push_back({.collective = std::string(name_of(at.first)),
                               .arm = "native",
                               .num_ranks = j.num_ranks,
                               .ranks_per_node = j.most_ranks_per_node(),
                               .bytes = at.second,
                               .median_s = median(measured)});
  }
}

}  // namespace

measurements sample_machine(const job& j, const std::string& rails, double budget_s,
                            std::span<const collective> natives, const progress_report& progress) {
  constexpr double memory_share = 0.05, native_share = 0.35, handover_share = 0.05;
  constexpr double links_share = 1 - memory_share - native_share - handover_share;
  // Progress of a part that starts at the fraction `begin` of the whole.
  const auto part = [&](double begin, double share) {
    return [&progress, begin, share](double fraction, const std::string& doing) {
      progress(begin + share * std::min(1.0, fraction), doing);
    };
  };
  double core_share = least_core_share();
  measurements all = sample_links(j, rails, links_share * budget_s, part(0, links_share));
  core_share += least_core_share();
  sample_natives(j, natives, all, native_share * budget_s, part(links_share, native_share));
  core_share += least_core_share();
  sample_handovers(j, all, handover_share * budget_s,
                   part(links_share + native_share, handover_share));
  if (j.rank == 0)
    sample_memory(all, memory_share * budget_s, part(1 - memory_share, memory_share));
  core_share += least_core_share();
  all.core_share = core_share / 4;
  return all;
}

}  // namespace railpass::internal::measure
