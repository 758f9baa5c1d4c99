// SPDX-License-Identifier: BSL-1.0
//
// Messages between hosts when MPI is finalized, which show how fast the hosts' links are whichever
// algorithms the program's collectives have used. railpass/select/statistics/link_times.hpp says
// which hosts meet.
#pragma once

#include "lib/group/base.hpp"
#include "railpass/select/statistics/link_times.hpp"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace railpass::internal {

/// One host's part, on its first rank. MPI may use the memory until the process ends if a partner
/// does not come.
class link_probe {
 public:
  struct limits {
    double until_s;   ///< by steady_clock_s: no longer wait for a partner
    double budget_s;  ///< for the data that a host sends and receives
  };

  /// On the first ranks of all hosts, which are `first_ranks` by number of the host. Throws
  /// std::bad_alloc.
  select::link_times run(const base_mapping& world, std::span<const int> first_ranks, int host,
                         const limits& within);

 private:
  // A call returns false if the peer, a rank of the base, has not come in time.
  bool meet(int peer, bool sends_first);
  bool send_back_and_forth(int peer, bool sends_first);
  bool exchange(std::byte word, int peer);
  bool send(std::span<std::byte> bytes, int peer);
  bool receive(std::span<std::byte> bytes, int peer);
  bool wait(MPI_Request& request, MPI_Status* status = MPI_STATUS_IGNORE) const;
  /// Tells all partners, which then do not wait for this host.
  void leave(const base_mapping& world, std::span<const int> first_ranks, int host);

  MPI_Comm comm_ = MPI_COMM_NULL;
  limits within_{};
  double spent_s_ = 0;
  double took_s_ = 0;  // data of the last meeting; 0: a host had spent its time
  std::array<std::byte, 1> word_{}, peer_word_{};
  std::vector<std::byte> data_;
};

}  // namespace railpass::internal
