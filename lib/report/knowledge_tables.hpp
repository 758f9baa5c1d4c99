// SPDX-License-Identifier: BSL-1.0
//
// Knowledge of earlier runs as tables and JSON: machines, and the best arm of every context.
#pragma once

#include "lib/report/table.hpp"
#include "models/profile.hpp"
#include "railpass/knowledge/experience.hpp"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

namespace railpass::internal::report {

/// "Xeon Gold, 48 cores, Open MPI 4.1.4, one host"
std::string text_of(const fingerprint& machine);
nlohmann::ordered_json to_json(const fingerprint& machine);

/// The contexts of one collective and operation.
struct best_arms {
  std::string title;
  table lines;  ///< of each context, by ranks and size: the best arm and its gain over native
  std::vector<nlohmann::ordered_json> contexts;  ///< the same as objects
};

/// Sorted by title. Every context needs at least one arm.
std::vector<best_arms> best_arms_of(std::span<const knowledge::experience> known);

}  // namespace railpass::internal::report
