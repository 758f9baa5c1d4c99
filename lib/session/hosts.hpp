// SPDX-License-Identifier: BSL-1.0
//
// Which ranks share a host. Hosts are told apart by the names that MPI has for them:
// MPI_COMM_TYPE_SHARED makes a communicator for each, which takes longer than all else.
#pragma once

#include <cstdint>
#include <span>

namespace railpass {

/// A number for this host, not negative. Allocates nothing, as others may be waiting for it.
std::int64_t mark_of_host();

struct host_counts {
  int num_hosts = 1;
  int ranks_per_host = 1;  ///< the largest number on any
};

/// From the marks of all ranks, which are put in another order.
host_counts count_hosts(std::span<std::int64_t> mark_of_rank);

}  // namespace railpass
