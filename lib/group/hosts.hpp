// SPDX-License-Identifier: BSL-1.0
//
// Finds the ranks that share a host, by the host names that MPI reports. MPI_COMM_TYPE_SHARED would
// make a communicator for each host, which takes longer than everything else.
#pragma once

#include "lib/rails/mpi/rank_map.hpp"
#include "railpass/schedule/nodes.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace railpass::internal {

/// A non-negative number for this host. Allocates nothing, because other ranks may be waiting.
std::int64_t mark_of_host();

/// Consecutive ranks on one host.
struct host_run {
  int first_rank = 0;
  int host = 0;  ///< numbered from 0 on
};

/// Computed from the marks of all ranks. Throws std::bad_alloc.
std::vector<host_run> find_hosts(std::span<const std::int64_t> mark_of_rank);

/// The hosts of all ranks, from their marks. Throws std::bad_alloc.
std::shared_ptr<const placement> placement_on_hosts(std::span<const std::int64_t> mark_of_rank);

struct host_counts {
  int num_hosts = 1;
  int ranks_per_host = 1;  ///< the largest number on any host
};

/// For the ranks that `ranks` gives for 0 to num_ranks - 1. Throws std::bad_alloc.
host_counts count_hosts(const placement& hosts, const rank_map& ranks, int num_ranks);

}  // namespace railpass::internal
