// SPDX-License-Identifier: BSL-1.0
//
// The fields of records of quarantine.
#pragma once

#include "collectives/registry.hpp"
#include "lib/files/fields.hpp"
#include "railpass/knowledge/quarantine.hpp"

namespace railpass::internal::files {

template <>
inline constexpr document_format format_for<knowledge::quarantined>{
    "railpass quarantine", 1,
    "An algorithm that gave a wrong result or hung, and is not used any more"};

inline void visit(auto& v, is<knowledge::quarantined> auto& q) {
  v({"mpi_library", "first line of MPI_Get_library_version"}, q.mpi_library);
  v("railpass_version", q.railpass_version);
  v({"found_at", utc_example}, q.found_at);
  v("collective", q.collective, nonempty);
  v({"algorithm", "is not used, with whatever parameters"}, q.algorithm, nonempty);
  v({"variant", "name of the arm that gave the wrong result or hung"}, q.variant);
  v("num_ranks", q.num_ranks, one_or_more);
  v("ranks_per_node", q.ranks_per_node, one_or_more);
  v({"bytes", "length of the message; 0: only pairs of ranks know it"}, q.bytes);
  v({"elements", "datatype of a reduction; empty: data were moved, or unknown"}, q.elements);
  v({"difference", "which rank had how many wrong bytes"}, q.difference);
  v(later("hung_on", "hosts on which all ranks hung; empty: the result was wrong"), q.hung_on);
}
inline void check(const json_reader& r, const knowledge::quarantined& q) {
  const auto op = find_collective(q.collective);
  if (!op || name_of(*op) != q.collective)
    r.field("collective").fail("expected a collective, found '" + q.collective + "'");
  if (!find_algorithm(*op, q.algorithm))
    r.field("algorithm").fail("there is no algorithm '" + q.algorithm + "' of " + q.collective);
}

}  // namespace railpass::internal::files
