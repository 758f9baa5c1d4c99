// SPDX-License-Identifier: BSL-1.0
//
// One collective at one size: the contestants' times side by side.
#pragma once

#include "collectives/registry.hpp"
#include "lib/measure/job.hpp"
#include "models/samples.hpp"
#include "railpass/base/statistics.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal::measure {

/// What is measured side by side: the MPI library's call, the tuned call, or one arm.
struct contestant {
  enum class kind { native, tuned, pinned };
  kind what = kind::native;
  std::string label;       ///< as the results name it
  arm pinned{};            ///< of a pinned one
  double predicted_s = 0;  ///< order in which the arms are tried first
  bool asked_for = false;  ///< by the user: measured whatever it costs
};

/// One collective at one size.
struct cell_request {
  collective op = collective::broadcast;
  std::int64_t bytes = 0;
  int root = 0;
  std::vector<contestant> contestants;
  double budget_s = 10;
  int learning = 0;         ///< first calls of a fresh context to measure; 0: none
  bool round_time = false;  ///< repetitions begin at a common instant, not behind a barrier
  std::uint64_t seed = 1;
};

/// What the tuned call was not shown to be as fast as.
struct not_shown {
  std::string other;  ///< "native", or "the best arm, LABEL"
  interval ratio;     ///< tuned / other, with 95 % confidence
};

/// Equal on all ranks.
struct cell_result {
  std::vector<bench_result> rows;                             ///< in the order of the contestants
  std::vector<learning_result> learning;                      ///< calls 1.., 101.., 1001..
  std::vector<std::pair<std::string, std::string>> left_out;  ///< label, why
  std::vector<std::string> wrong;  ///< labels of those with a wrong result
  std::int64_t repetitions = 0;
  std::int64_t late_rounds = 0;  ///< of `round_time`: left out, since a rank was late
  std::vector<not_shown> missed;
  std::string tuned_arm;  ///< what the tuned call had settled on
};

/// Measures. Collective over MPI_COMM_WORLD.
cell_result measure_cell(const job& j, const cell_request& request,
                         const progress_report& progress);

}  // namespace railpass::internal::measure
