// SPDX-License-Identifier: BSL-1.0
//
// The fields of plans.
#pragma once

#include "collectives/registry.hpp"
#include "lib/files/machine_fields.hpp"
#include "railpass/knowledge/plan.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <algorithm>

namespace railpass::internal::files {

inline void visit(auto& v, is<knowledge::planned_calls> auto& c) {
  v("collective", c.collective, nonempty);
  v("operation", c.operation, nonempty);
  v("num_ranks", c.num_ranks, whole{.low = 2, .high = largest_count});
  v("ranks_per_node", c.ranks_per_node, one_or_more);
  visit_if(!c.rails.empty(), v, {"rails", "networks used for messages (RAILPASS_RAILS)"}, c.rails);
  v("from_bytes", c.from_bytes);
  v({"to_bytes", "the largest size; missing: no limit"}, c.to_bytes);
  v({"variant", "name of an arm"}, c.variant, nonempty);
}
inline void check(const json_reader& r, const knowledge::planned_calls& c) {
  if (c.to_bytes && *c.to_bytes < c.from_bytes)
    r.field("to_bytes").fail("expected at least from_bytes");
  const auto op = find_collective(c.collective);
  if (!op || name_of(*op) != c.collective)
    r.field("collective").fail("expected a collective, found '" + c.collective + "'");
  if (std::ranges::find(select::operation_class_names, c.operation) ==
      select::operation_class_names.end())
    r.field("operation").fail("expected none, builtin, user_commutative or user_ordered");
  if (describe(*op).lengths == block_lengths::of_pair && (c.from_bytes > 0 || c.to_bytes))
    r.field("collective")
        .fail(
            "expected from_bytes 0 and no to_bytes, because only pairs of ranks "
            "know the sizes of these calls");
  try {
    static_cast<void>(parse_arm(*op, c.variant));
  } catch (const error& problem) {
    r.field("variant").fail(problem.what());
  }
}

template <>
inline constexpr document_format format_for<knowledge::plan>{
    "railpass plan", 1, "Variants that programs follow without learning (railpass freeze)"};

inline void visit(auto& v, is<knowledge::plan> auto& p) {
  v(machine_id, p.machine);
  v({"written_at", utc_example}, p.written_at);
  v("calls", p.calls);
}

}  // namespace railpass::internal::files
