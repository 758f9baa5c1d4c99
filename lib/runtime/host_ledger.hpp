// SPDX-License-Identifier: BSL-1.0
//
// The ledger of this process, and its gathering by rank 0 of MPI_COMM_WORLD when MPI is finalized.
// The sums and what they show are in railpass/select/statistics.
#pragma once

#include "lib/group/base.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/select/statistics/dump.hpp"
#include "railpass/select/statistics/rank_ledger.hpp"

#include <mpi.h>

#include <array>
#include <vector>

namespace railpass::internal {

class host_ledger {
 public:
  /// How long rank 0 waits in MPI_Finalize for the ledgers of ranks that come later.
  static constexpr int patience_s = 10;

  /// On all ranks between the same two calls, or on no rank. May be called again.
  void start();
  bool has_started() const { return has_started_; }

  /// Enters a timed call.
  void add(const select::timed_stay& s) {
    if (sums_.add(s)) end_batch();
  }

  /// On all ranks but rank 0, once: sends the ledger to rank 0. Local.
  void tell(const base_mapping& world, bool names_host);
  /// On rank 0: the hosts; empty if a rank's ledger has not come in time. Throws std::bad_alloc.
  std::vector<select::host_statistics> gather(const base_mapping& world, bool names_hosts);

 private:
  struct message {
    std::array<char, 128> host{};  // empty: the name stays private
    select::rank_ledger sums;
    int rank = 0;
  };

  void end_batch();
  message own_message(const base_mapping& world, bool names_host) const;

  select::rank_ledger sums_;
  bool has_started_ = false;
  double began_s_ = 0, starved_before_s_ = 0;  // the batch
  message sent_;                               // until MPI has taken it
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace railpass::internal
