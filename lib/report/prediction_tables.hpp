// SPDX-License-Identifier: BSL-1.0
//
// Predicted times of arms, and the sizes where the fastest arm changes, as tables and JSON.
#pragma once

#include "collectives/registry.hpp"
#include "lib/report/output.hpp"
#include "models/profile.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace railpass::internal::report {

struct prediction_view {
  collective op = collective::broadcast;
  int num_ranks = 0;
  int ranks_per_node = 1;
  int ranks_per_cache = 0;       ///< of one node; 0: they share one
  std::vector<arm> arms;         ///< empty: all arms
  bool simulate = false;         ///< also play the schedules of all ranks
  bool simulate_hidden = false;  ///< also those of arms that are not shown
  bool all = false;              ///< show all arms, not only the fastest
  std::string profile_path;      ///< empty: the profile is the generic machine
};

/// Sentences before the tables: which ranks and profile, and what the profile does not know.
std::string heading_of(const profile& known, const prediction_view& view);
std::string limits_of(const profile& known, const prediction_view& view);

/// For messages of one size.
struct predicted_times {
  std::int64_t bytes = 0;
  table lines;
  std::size_t num_hidden = 0;      ///< arms that are not in the table
  nlohmann::ordered_json numbers;  ///< of all arms
};

predicted_times predict_times(const profile& known, const prediction_view& view,
                              std::int64_t bytes);
void print(const predicted_times& times, output& out);

/// Empty if all sizes are 0 or there is a single rank.
struct predicted_crossovers {
  table lines;
  nlohmann::ordered_json numbers;
};

/// @param sizes of messages, in bytes; at least one
predicted_crossovers predict_crossovers(const profile& known, const prediction_view& view,
                                        const std::vector<std::int64_t>& sizes);

}  // namespace railpass::internal::report
