// SPDX-License-Identifier: BSL-1.0
//
// The ledger of this process, and its gathering by rank 0 of MPI_COMM_WORLD when MPI is finalized.
// The sums and what they show are in railpass/select/statistics.
#pragma once

#include "lib/group/base.hpp"
#include "lib/runtime/ledger_board.hpp"
#include "lib/runtime/link_probe.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/select/statistics/dump.hpp"
#include "railpass/select/statistics/rank_ledger.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal {

/// Hosts of MPI_COMM_WORLD, numbered from 0 on in the order of their first ranks.
struct hosts_of_world {
  std::vector<int> host_of_rank, first_ranks;
  explicit hosts_of_world(const base_mapping& world);
};

class host_ledger {
 public:
  /// How long rank 0 and the first ranks of hosts wait in MPI_Finalize for ranks that come later.
  static constexpr int patience_s = 10;
  static constexpr double links_budget_s = 3;  ///< for a host's data in measurements of links

  /// On all ranks between the same two calls, or on no rank. May be called again. Shows the ledger
  /// on the board `board` from now on; returns why not, or an empty text.
  std::string start(std::uint64_t board);
  bool has_started() const { return has_started_; }

  /// Enters a timed call.
  void add(const select::timed_stay& s) {
    if (sums_.add(s)) end_batch();
  }

  /// On all ranks, once: measures the hosts' links, if all hosts' first ranks write statistics, and
  /// sends the ledgers to rank 0. Returns the hosts on rank 0; empty if a rank's ledger has not
  /// come in time. Throws std::bad_alloc.
  std::vector<select::host_statistics> end(const base_mapping& world, const settings& values);

 private:
  struct message {
    std::array<char, 128> host{};  // empty: the name stays private
    select::rank_ledger sums;
    select::link_times links;  // of first ranks of hosts
    int rank = 0;
  };

  void end_batch();
  message own_message(const base_mapping& world, bool names_host) const;
  std::vector<select::host_statistics> gather(const base_mapping& world, const hosts_of_world& on,
                                              bool names_hosts, double until_s) const;

  select::rank_ledger sums_;
  select::link_times links_;
  link_probe probe_;
  std::optional<ledger_board> board_;
  bool has_started_ = false;
  double began_s_ = 0, starved_before_s_ = 0;  // the batch
  message sent_;                               // until MPI has taken it
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace railpass::internal
