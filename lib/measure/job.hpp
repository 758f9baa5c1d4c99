// SPDX-License-Identifier: BSL-1.0
//
// Who measures, and where: the ranks of the job, the marks of the machine, and what ranks tell each
// other around a measurement.
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
  std::vector<int> cache_of_rank;  ///< see find_caches; empty: those of each node share one
  int num_nodes() const { return int(hosts.size()); }
  int most_ranks_per_node() const { return nodes().most_ranks; }
  node_facts nodes() const { return node_order(node_of_rank).facts(); }
  /// Of one node.
  node_facts caches() const {
    return cache_of_rank.empty() || num_nodes() > 1 ? node_facts{}
                                                    : node_order(cache_of_rank).facts();
  }
};

/// Equal on all ranks but for `rank`. Collective over MPI_COMM_WORLD, as all that follows but for
/// machine_marks.
job job_of_world();

/// The marks of this machine with the MPI library this program runs with, and with the rails that
/// RAILPASS_RAILS names. Works without MPI_Init.
fingerprint machine_marks(int num_hosts);

/// Barrier of `comm` in which those who come early sleep.
void quiet_barrier(MPI_Comm comm);

/// A value of rank `from`, on all ranks.
double agreed(double value, int from = 0);
int agreed(int value, int from = 0);
/// Gives all ranks rank 0's text.
void broadcast_text(std::string& text);
/// The texts of all ranks, on rank 0.
std::vector<std::string> gather_texts(const job& j, const std::string& mine);

/// Told how far a measurement is: a fraction and what is being done.
using progress_report = std::function<void(double, const std::string&)>;

}  // namespace railpass::internal::measure
