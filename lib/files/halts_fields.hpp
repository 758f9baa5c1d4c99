// SPDX-License-Identifier: BSL-1.0
//
// The fields of records of halted ranks.
#pragma once

#include "collectives/registry.hpp"
#include "lib/files/knowledge_fields.hpp"
#include "railpass/knowledge/halts.hpp"

namespace railpass::internal::files {

inline void visit(auto& v, is<knowledge::halted_call> auto& c) {
  v({"communicator", "equal on all its ranks, and in no other run"}, c.communicator, nonempty);
  v({"name", "as the program named the communicator"}, c.name);
  v("rank", c.rank, whole{.low = 0, .high = largest_count});
  v("num_ranks", c.num_ranks, one_or_more);
  v({"call", "number of the last call; 0: no call"}, c.call);
  v("collective", c.collective, nonempty);
  v({"arm", "of railpass, which the rank is inside; empty: inside no such arm"}, c.arm);
  v("bytes", c.bytes);
  v({"unchanged_s", "without any progress"}, c.unchanged_s);
}
inline void check(const json_reader& r, const knowledge::halted_call& c) {
  const auto op = find_collective(c.collective);
  if (!op || name_of(*op) != c.collective)
    r.field("collective").fail("expected a collective, found '" + c.collective + "'");
  if (!c.arm.empty() && !is_arm(*op, c.arm))
    r.field("arm").fail("expected an arm of " + c.collective + ", found '" + c.arm + "'");
  if (c.rank >= c.num_ranks)
    r.field("rank").fail("expected less than num_ranks, found " + std::to_string(c.rank));
}

template <>
inline constexpr document_format format_for<knowledge::halted_rank>{
    "railpass halt", 1, "The calls of a process that makes no progress"};

inline void visit(auto& v, is<knowledge::halted_rank> auto& r) {
  v({"mpi_library", "first line of MPI_Get_library_version"}, r.mpi_library);
  v("railpass_version", r.railpass_version);
  v("host", r.host, nonempty);
  v({"written_at", utc_example}, r.written_at, utc{});
  v({"period_s", "between two writings"}, r.period_s, positive{});
  v({"calls", "the last call on each communicator"}, r.calls);
}

}  // namespace railpass::internal::files
