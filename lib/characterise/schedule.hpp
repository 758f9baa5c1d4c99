// SPDX-License-Identifier: BSL-1.0
//
// Chooses the launches of a characterisation: which collectives and sizes, on how many ranks, by
// which arms. Pure: the choice follows from the launches so far alone, so an interrupted
// characterisation goes on where it was.
#pragma once

#include "collectives/collective.hpp"
#include "models/samples.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal::characterise {

/// The collectives and ranks to measure, and the time for all launches.
struct question {
  std::vector<collective> ops{};
  std::vector<int> ranks{};
  double budget_s = 1200;      ///< of all launches together
  bool own_algorithms = true;  ///< the MPI library's own algorithms can be forced
  /// Whether rules may take an own algorithm of the MPI library, by the arm's name and a launch.
  std::function<bool(collective, const std::string&, const bench_results&)> rules_take =
      [](collective, const std::string&, const bench_results&) { return true; };
};

/// The sizes that each collective is measured at, in bytes, before any other: a factor of 7 to 13
/// apart, and not all powers of two.
inline constexpr std::array<std::int64_t, 7> coarse_sizes{8,     100,    1024,   10000,
                                                          65536, 500000, 4194304};

/// A cell is a collective at a size on a number of ranks. The first two launches of a coarse cell
/// screen the MPI library's own algorithms and the arms of railpass. The contenders are the fastest
/// of these arms, and the fastest arms that rules may take. A cell where a contender may be faster
/// than native gets `deciding_launches` of the contenders, the number that rules need
/// (libraries::least_confidence). Other cells get `first_launches`.
inline constexpr int deciding_launches = 6, first_launches = 2;
/// An arm with at most this share of native's time may be worth a rule or an entry of a plan.
inline constexpr double deciding_ratio = 0.97;
/// Most launches of contenders in a cell, to make an interval narrower.
inline constexpr int most_launches = 24;

/// One launch of railpass bench: each collective at each size.
struct launch_request {
  int num_ranks = 0;
  std::vector<collective> ops{};
  std::vector<std::int64_t> sizes{};  ///< bytes; the bench rounds up to whole elements
  std::vector<std::string> arms{};    ///< as bench --arms
  double budget_s = 0;
  friend bool operator==(const launch_request&, const launch_request&) = default;
};

struct launch_record {
  launch_request request{};
  double wall_s = 0;
  std::string failure{};    ///< the reason why there are no results; empty: there are
  bench_results results{};  ///< of this launch alone
};

/// The time after which ranks that hang are ended. A launch takes up to three times its budget, as
/// a cell with slow calls needs a few repetitions (lib/measure/bench_cell.cpp), and the start.
constexpr double limit_s(double budget_s) { return 60 + 4 * budget_s; }

/// Estimates the time of a launch from earlier launches on the same number of ranks.
double estimated_s(const launch_request& next, std::span<const launch_record> so_far);

/// The next launch; nothing if the time is over or if no launch would change a decision. First all
/// cells of coarse_sizes, and more launches of cells where an arm may be faster than native; then
/// sizes between neighbours where the best arm changes or native's time jumps, if the time is
/// enough for all launches of such a size, and cells whose intervals are wide. A collective whose
/// launch failed on a number of ranks is launched alone there, and after a second failure in a
/// row not again. A launch without collectives only counts with its time.
std::optional<launch_request> next_launch(const question& q, std::span<const launch_record> so_far);

/// Sentences about the collectives that have no times on a number of ranks, because two launches
/// in a row failed or the time was too short, and about numbers of ranks on which no arm of
/// railpass has a time.
std::vector<std::string> left_out(const question& q, std::span<const launch_record> so_far);

}  // namespace railpass::internal::characterise
