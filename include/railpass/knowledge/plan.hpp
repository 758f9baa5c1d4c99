// SPDX-License-Identifier: BSL-1.0
//
// A plan: for each kind of call the variant that runs, chosen beforehand from knowledge. A program
// that follows a plan (RAILPASS_PLAN) learns nothing, so every run makes the same choices.
#pragma once

#include "models/profile.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace railpass::knowledge {

/// Calls of these sizes, in communicators of this shape, and the variant that runs them.
struct planned_calls {
  std::string collective{};
  std::string operation = "none";  ///< class of the reduction, as in dumps
  int num_ranks = 2;
  int ranks_per_node = 1;
  std::string rails{};          ///< networks that messages are sent over; empty: MPI's own messages
  std::int64_t from_bytes = 0;  ///< sizes from here
  std::optional<std::int64_t> to_bytes{};  ///< to here, inclusive; empty: no limit
  std::string variant{};                   ///< name of an arm
  friend bool operator==(const planned_calls&, const planned_calls&) = default;
};

/// The properties of planned calls besides size and variant.
inline auto shape_of(const planned_calls& c) {
  return std::tie(c.collective, c.operation, c.num_ranks, c.ranks_per_node, c.rails);
}

/// Adds calls after all calls of smaller sizes. Neighbouring sizes with one variant become one
/// entry.
inline void append(std::vector<planned_calls>& all, const planned_calls& next) {
  if (!all.empty() && shape_of(all.back()) == shape_of(next) &&
      all.back().variant == next.variant && *all.back().to_bytes + 1 == next.from_bytes)
    all.back().to_bytes = next.to_bytes;
  else
    all.push_back(next);
}

/// The marks of a machine in a plan, whose calls contain the number of hosts and the rails.
inline fingerprint marks_for_plan(fingerprint machine) {
  machine.num_hosts = 1;
  machine.rails.clear();
  return machine;
}

struct plan {
  fingerprint machine{};     ///< marks_for_plan()
  std::string written_at{};  ///< UTC
  std::vector<planned_calls> calls{};
  friend bool operator==(const plan&, const plan&) = default;
};

}  // namespace railpass::knowledge
