// SPDX-License-Identifier: BSL-1.0
//
// The job that measures: its ranks, the marks of the machine, and messages between ranks around a
// measurement.
#pragma once

#include "models/profile.hpp"
#include "railpass/schedule/nodes.hpp"

#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

namespace railpass::internal::measure {

/// The ranks of MPI_COMM_WORLD and where they run.
struct job {
  int rank = 0;
  int num_ranks = 1;
  std::vector<int> node_of_rank;   ///< nodes numbered from 0 in order of their first rank
  std::vector<std::string> hosts;  ///< name of each node
  std::vector<int> cache_of_rank;  ///< see find_caches; empty: the ranks of each node share a cache
  int num_nodes() const { return int(hosts.size()); }
  int most_ranks_per_node() const { return nodes().most_ranks; }
  node_facts nodes() const { return node_order(node_of_rank).facts(); }
  /// The caches of a job on one node.
  node_facts caches() const {
    return cache_of_rank.empty() || num_nodes() > 1 ? node_facts{}
                                                    : node_order(cache_of_rank).facts();
  }
};

/// Equal on all ranks but for `rank`. Collective over MPI_COMM_WORLD, like all functions below but
/// machine_marks.
job job_of_world();

/// The marks of this machine, of the program's MPI library and of the rails that RAILPASS_RAILS
/// names. Works without MPI_Init.
fingerprint machine_marks(int num_hosts);

/// Barrier of `comm` in which early ranks sleep.
void quiet_barrier(MPI_Comm comm);

/// Returns rank `from`'s value on all ranks.
double agreed(double value, int from = 0);
int agreed(int value, int from = 0);
/// Replaces the text on all ranks by rank 0's text.
void broadcast_text(std::string& text);
/// Returns the texts of all ranks on rank 0.
std::vector<std::string> gather_texts(const job& j, const std::string& mine);

/// Receives the fraction that is done, and the present activity.
using progress_report = std::function<void(double, const std::string&)>;

}  // namespace railpass::internal::measure
