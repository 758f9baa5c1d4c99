// SPDX-License-Identifier: BSL-1.0
//
// Memory that the ranks of a base share within each host, made once with the base. Communicators
// get slots of this memory (memory_slot.hpp). Each slot has a region for each rank of the host.
#pragma once

#include "lib/exec/cells.hpp"
#include "lib/group/resource_book.hpp"
#include "lib/rails/mpi/rank_map.hpp"
#include "railpass/schedule/nodes.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace railpass::internal {

/// Anonymous memory (memfd), which vanishes with its ranks however they end. A socket passes the
/// descriptor between processes. So only processes of the base that can share memory get access.
/// The memory is reserved when it is made: no access fails.
class node_memory {
 public:
  /// Communicators that may use the memory at a time. More slots would seldom be used.
  static constexpr int most_slots = resource_book::most_slots;

  class making;
  ~node_memory();
  node_memory(const node_memory&) = delete;
  node_memory& operator=(const node_memory&) = delete;

  int num_slots() const { return num_slots_; }
  /// Whether the ranks of this host may use at least a core per rank.
  bool has_core_per_rank() const { return core_per_rank_; }
  /// Whether each rank of this host may copy from and to the memory of every other rank there.
  bool has_single_copy() const { return single_copy_; }
  /// This rank's region in a slot; without memory if the base has no other rank on this host.
  cell_region own_region(int slot) const { return memory_ ? region(local_, slot) : cell_region(); }

  /// A communicator's use of a slot: from the agreement of its ranks until this rank no longer
  /// reads the regions of other ranks.
  class use {
   public:
    /// `ranks`: ranks in the base, on any hosts; all have taken the slot. `room`: reserved for the
    /// ranks of one host, because nothing may fail here on one rank alone.
    use(node_memory& of, int slot, const rank_map& ranks, int num_ranks, cell_regions room);
    use(const use&) = delete;
    use& operator=(const use&) = delete;
    /// Ends the use: this rank no longer reads other regions. Returns the number of ranks that will
    /// report the same about this rank's region.
    std::uint64_t leave();
    /// Regions of the communicator's ranks on this host, without memory if this rank is the base's
    /// only rank here.
    const cell_regions& regions() const { return regions_; }

   private:
    int rank_ = 0;
    cell_regions regions_;
  };

 private:
  node_memory() = default;
  cell_region region(int local, int slot) const;

  // A base's rank among this host's ranks; -1 for ranks on other hosts.
  int local_of(int rank) const {
    return hosts_->node_of(rank) == host_ ? hosts_->local_rank(rank) : -1;
  }

  std::shared_ptr<const placement> hosts_;
  int host_ = 0;   // of this rank
  int local_ = 0;  // its own local rank
  int num_local_ = 0;
  int num_slots_ = 0;
  bool core_per_rank_ = false;
  std::uint64_t word_ = 0;  // copied by other ranks as a test
  bool single_copy_ = false;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Makes the memory on all ranks of a communicator or on no rank, with two reductions and without
/// any MPI object.
class node_memory::making {
 public:
  /// This rank's part before the agreement: the first rank of each host listens. `hosts`: of the
  /// ranks. `id`: equal on all ranks, and used by no other communicator. Throws std::bad_alloc.
  making(MPI_Comm comm, std::shared_ptr<const placement> hosts, std::uint64_t id,
         std::int64_t most_bytes);
  ~making();
  making(const making&) = delete;
  making& operator=(const making&) = delete;

  /// Bytes per host that this rank offers; the smallest offer counts.
  std::int64_t offered_bytes() const;
  /// Returns the memory with `agreed_bytes` per host. Null on all ranks if the memory is too small,
  /// no host has two ranks, or a system call has failed; then `problem` names the failed call on
  /// that rank and is empty on other ranks. Collective. `agreed_bytes` must be equal on all ranks,
  /// because it decides whether ranks communicate at all.
  std::unique_ptr<node_memory> finish(std::int64_t agreed_bytes, std::string& problem);

 private:
  struct part;
  std::unique_ptr<part> mine_;
};

}  // namespace railpass::internal
