// SPDX-License-Identifier: BSL-1.0
//
// Measures one collective at one size: the times of all contestants side by side.
#pragma once

#include "collectives/registry.hpp"
#include "lib/measure/job.hpp"
#include "lib/measure/own_algorithms.hpp"
#include "models/samples.hpp"
#include "railpass/base/statistics.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal::measure {

/// A contestant: the MPI library's call, the tuned call, one arm, or the MPI library's call with
/// one of its own algorithms.
struct contestant {
  enum class kind { native, tuned, pinned, own };
  kind what = kind::native;
  std::string label;               ///< name in the results
  arm pinned{};                    ///< only for kind::pinned
  own_algorithm own{};             ///< only for kind::own
  std::int64_t segment_bytes = 0;  ///< only for kind::own; 0: the library's default
  double predicted_s = 0;          ///< determines the order of the first calls of arms
  bool asked_for = false;          ///< by the user: always measured
};

/// One collective at one size.
struct cell_request {
  collective op = collective::broadcast;
  std::int64_t bytes = 0;
  int root = 0;
  std::vector<contestant> contestants;
  const own_algorithms* own = nullptr;  ///< required for kind::own
  double budget_s = 10;
  int learning = 0;         ///< number of first calls of a fresh context to measure; 0: none
  bool round_time = false;  ///< repetitions start at a common instant instead of after a barrier
  std::uint64_t seed = 1;
};

/// A contestant that the tuned call was not shown to match.
struct not_shown {
  std::string other;  ///< "native", or "the best arm, LABEL"
  interval ratio;     ///< tuned / other, with 95 % confidence
};

/// Equal on all ranks.
struct cell_result {
  std::vector<bench_result> rows;                             ///< in the order of the contestants
  std::vector<learning_result> learning;                      ///< calls 1.., 101.., 1001..
  std::vector<std::pair<std::string, std::string>> left_out;  ///< label, why
  /// Labels of contestants with wrong results. All but native are left out of the rows.
  std::vector<std::string> wrong;
  std::int64_t repetitions = 0;
  std::int64_t late_rounds = 0;  ///< left out of `round_time`, because a rank was late
  std::vector<not_shown> missed;
  std::string tuned_arm;  ///< arm to which the tuned call had converged
};

/// Collective over MPI_COMM_WORLD.
cell_result measure_cell(const job& j, const cell_request& request,
                         const progress_report& progress);

}  // namespace railpass::internal::measure
