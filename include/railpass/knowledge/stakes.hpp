// SPDX-License-Identifier: BSL-1.0
//
// The expected benefit of tuning a call of a communicator that is not tuned yet. If the benefit is
// large, tuning starts in this very call. All ranks must decide alike, so rank 0 of MPI_COMM_WORLD
// distributes its decisions. Plain data.
#pragma once

#include "collectives/collective.hpp"
#include "collectives/registry.hpp"
#include "railpass/knowledge/recall.hpp"
#include "railpass/select/lockstep/beginning.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace railpass::knowledge {

/// Whether tuning pays before the first agreement, in place of that many native calls; empty if
/// unknown.
inline std::optional<bool> pays_at_once(const experience& known) {
  // Set-up takes about 200 us on a few ranks. After this many calls, an arm faster than native has
  // mostly been found.
  constexpr double price_s = 200e-6;
  constexpr std::int64_t enough_calls = 100;
  std::optional<double> native_s, best_s;
  std::int64_t calls = 0;
  for (const arm_experience& a : known.arms) {
    const double seconds = told_by(a).mean_s;
    calls += a.calls;
    if (a.arm == "native")
      native_s = seconds;
    else
      best_s = std::min(best_s.value_or(seconds), seconds);
  }
  if (!native_s || !best_s) return std::nullopt;
  const bool pays =
      double(select::beginning::first_agreement - 1) * (*native_s - *best_s) > price_s;
  return pays || calls >= enough_calls ? std::optional(pays) : std::nullopt;
}

/// For communicators of one number of ranks.
class stakes {
 public:
  /// No call has a benefit.
  stakes() = default;

  /// Judges by size alone, without knowledge: seven such messages may well gain the cost of set-up.
  /// Without v-forms, whose sizes are not known to all ranks.
  static stakes of_sizes(bool on_one_host) {
    const std::int64_t long_bytes = on_one_host ? 1024 * 1024 : 256 * 1024;
    stakes all;
    for (const collective op : all_collectives)
      if (describe(op).lengths == block_lengths::equal && describe(op).what != promise::all_arrive)
        all.classes_[std::size_t(op)] = ~std::uint64_t{0} << select::size_class_of(long_bytes);
    return all;
  }

  /// Judges by size, corrected by knowledge from equally many ranks at equal distances.
  static stakes of_knowledge(std::span<const experience> known, int num_ranks, int ranks_per_node) {
    stakes all = of_sizes(ranks_per_node == num_ranks);
    stakes pays, pays_not;
    for (const experience& e : known) {
      const auto op = find_collective(e.of.collective);
      if (!op || all.classes_[std::size_t(*op)] == 0 || e.of.num_ranks != num_ranks ||
          e.of.ranks_per_node != ranks_per_node)
        continue;
      if (const auto at_once = pays_at_once(e))
        (*at_once ? pays : pays_not).classes_[std::size_t(*op)] |=
            std::uint64_t{1} << select::size_class_of(e.of.bytes);
    }
    for (std::size_t i = 0; i < num_collectives; ++i)
      all.classes_[i] = (all.classes_[i] & ~pays_not.classes_[i]) | pays.classes_[i];
    return all;
  }

  bool are_high(collective op, std::int64_t bytes) const {
    return (classes_[std::size_t(op)] >> select::size_class_of(bytes) & 1) != 0;
  }

 private:
  std::array<std::uint64_t, num_collectives> classes_{};  // a bit for each size class
};

/// For communicators of all ranks of the job, and for smaller ones.
struct stakes_of_job {
  stakes of_all{}, of_fewer{};
};

}  // namespace railpass::knowledge
