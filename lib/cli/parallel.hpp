// SPDX-License-Identifier: BSL-1.0
//
// What the verbs that run under mpirun share.
#pragma once

#include "models/profile.hpp"

#include <mpi.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::cli {

/// Whether mpirun or its like started this process.
bool under_launcher();

/// Whether this process is to print: alone, or rank 0 of the job as far as the environment tells.
/// Works before MPI is initialised, which matters for wrong use.
bool speaks_for_the_job();

/// For the ranks that do not speak, before they end with a status that is not 0: mpirun ends the
/// job at the first one, and rank 0 must have spoken by then.
void let_rank_0_speak();

/// The marks of this machine with the MPI library this program runs with, and with the rails that
/// RAILPASS_RAILS names. Works without MPI_Init.
fingerprint machine_marks(int num_hosts);

/// The ranks of MPI_COMM_WORLD and where they run.
struct job {
  int rank = 0;
  int num_ranks = 1;
  std::vector<int> node_of_rank;   ///< nodes numbered from 0 in order of their first rank
  std::vector<std::string> hosts;  ///< name of each node
  int num_nodes() const { return int(hosts.size()); }
  int most_ranks_per_node() const;

  /// Runs `work` on rank 0 alone. Collective: what it throws there is thrown on all ranks, so that
  /// all of them end alike.
  void on_rank_0(const std::function<void()>& work) const;
};

/// Initialises MPI, runs `body` on all ranks and finalizes. Errors that `body` throws must be
/// thrown on all ranks; what only one rank meets ends the job.
int run_job(const std::function<int(const job&)>& body);

/// Barrier in which those who come early sleep.
void quiet_barrier(MPI_Comm comm);

/// A value of rank `from`, on all ranks.
double agreed(double value, int from = 0);
int agreed(int value, int from = 0);
/// Gives all ranks rank 0's text.
void broadcast_text(std::string& text);
/// The texts of all ranks, on rank 0.
std::vector<std::string> gather_texts(const job& j, const std::string& mine);

}  // namespace railpass::cli
