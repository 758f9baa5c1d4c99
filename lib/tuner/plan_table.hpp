// SPDX-License-Identifier: BSL-1.0
//
// The plan of RAILPASS_PLAN for one communicator: the arm of each call.
#pragma once

#include "collectives/registry.hpp"
#include "railpass/knowledge/plan.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace railpass::internal {

class plan_table {
 public:
  /// The part of the plan for communicators of this size. `rails`: see rails_mark().
  plan_table(const knowledge::plan& p, int num_ranks, std::string_view rails);
  /// Whether any calls of communicators of this size do not go to the MPI library.
  static bool has_any(const knowledge::plan& p, int num_ranks);

  /// Call before find(): keeps the part for this many ranks per node, and for calls over the rails
  /// or over MPI's messages. Allocates nothing.
  void keep(int ranks_per_node, bool over_rails);

  /// The arm of a call; null: native. `bytes` is 0 where only pairs of ranks know the size. Valid
  /// as long as the table.
  const arm* find(collective op, select::operation_class operation, std::int64_t bytes) const {
    for (const entry& e : entries_[std::size_t(op)])
      if (e.operation == operation && bytes >= e.from_bytes && bytes <= e.to_bytes)
        return &e.chosen;
    return nullptr;
  }

 private:
  struct entry {
    int ranks_per_node = 1;
    bool over_rails = false;
    select::operation_class operation{};
    std::int64_t from_bytes = 0, to_bytes = std::numeric_limits<std::int64_t>::max();
    arm chosen{};
  };
  std::array<std::vector<entry>, num_collectives> entries_;
};

}  // namespace railpass::internal
