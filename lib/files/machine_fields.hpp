// SPDX-License-Identifier: BSL-1.0
//
// Fields that several kinds of files have: the marks of a machine, and the time of a collective.
#pragma once

#include "lib/files/fields.hpp"
#include "models/profile.hpp"

namespace railpass::internal::files {

inline constexpr field machine_id("machine_id", "properties that identify the machine");

inline void visit(auto& v, is<fingerprint> auto& m) {
  v("num_hosts", m.num_hosts, one_or_more);
  v("cores_per_host", m.cores_per_host, whole{.high = largest_count});
  v("cpu_model", m.cpu_model);
  v({"mpi_library", "the first line of MPI_Get_library_version"}, m.mpi_library);
  visit_if(!m.rails.empty(), v, {"rails", "networks used for messages (RAILPASS_RAILS)"}, m.rails);
}

inline void visit(auto& v, is<collective_time> auto& t) {
  v("collective", t.collective, nonempty);
  v("arm", t.arm, nonempty);
  v("num_ranks", t.num_ranks, one_or_more);
  v("ranks_per_node", t.ranks_per_node, one_or_more);
  v("bytes", t.bytes);
  v("median_s", t.median_s, positive{});
}

}  // namespace railpass::internal::files
