// SPDX-License-Identifier: BSL-1.0
//
// Memory that the ranks of a base share within each host: made once, with the base, for all the
// communicators that get a slot there (memory_slot.hpp). In each slot is a region for each rank of
// the host.
#pragma once

#include "lib/exec/cells.hpp"
#include "lib/group/place_book.hpp"
#include "lib/rails/mpi/rank_map.hpp"
#include "railpass/schedule/nodes.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace railpass::internal {

/// Anonymous memory (memfd), so that nothing is left of it when its ranks are gone, however they
/// ended; its descriptor goes from one process to the others through a socket, so that ranks share
/// it where they really can and nobody else gets at it. Reserved when it is made: no access fails.
class node_memory {
 public:
  /// Communicators at once that may use it: more need memory that few programs would use.
  static constexpr int most_slots = place_book::most_slots;

  class making;
  ~node_memory();
  node_memory(const node_memory&) = delete;
  node_memory& operator=(const node_memory&) = delete;

  int num_slots() const { return num_slots_; }
  /// Whether each rank of this host has a core, as far as the cores go that they may use.
  bool has_core_per_rank() const { return core_per_rank_; }
  /// Whether each rank of this host may copy from and to the memory of all others there.
  bool has_single_copy() const { return single_copy_; }
  /// What this rank shows in a slot; without memory if it is the base's only rank of its host.
  cell_region own_region(int slot) const { return memory_ ? region(local_, slot) : cell_region(); }

  /// A communicator's use of a slot, from when all have agreed on it until this rank reads nothing
  /// more of what the others write.
  class use {
   public:
    /// `ranks` are the base's, which all have taken the slot, on any hosts. `room` has been
    /// reserved for those of one host, as nothing may fail here on one rank alone.
    use(node_memory& of, int slot, const rank_map& ranks, int num_ranks, cell_regions room);
    use(const use&) = delete;
    use& operator=(const use&) = delete;
    /// The end: what others show is not read any more. Returns how many ranks will say that of what
    /// this one has shown.
    std::uint64_t leave();
    /// Of the communicator's ranks on this host, without memory if this rank is the base's only one
    /// here.
    const cell_regions& regions() const { return regions_; }

   private:
    int rank_ = 0;
    cell_regions regions_;
  };

 private:
  node_memory() = default;
  cell_region region(int local, int slot) const;

  // Of a rank of the base: its place among this host's ranks; on other hosts: -1.
  int local_of(int rank) const {
    return hosts_->node_of(rank) == host_ ? hosts_->place_on_node(rank) : -1;
  }

  std::shared_ptr<const placement> hosts_;
  int host_ = 0;   // this rank's, as the next one
  int local_ = 0;  // the place there
  int num_local_ = 0;
  int num_slots_ = 0;
  bool core_per_rank_ = false;
  std::uint64_t word_ = 0;  // for others to try to copy
  bool single_copy_ = false;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// How the ranks of a communicator get such memory, all of them or none: with two reductions, and
/// without making anything of MPI's.
class node_memory::making {
 public:
  /// This rank's part before all agree: the first rank of each host listens. `hosts`: of the ranks;
  /// `id` is the same on all ranks and nobody else's. Throws std::bad_alloc.
  making(MPI_Comm comm, std::shared_ptr<const placement> hosts, std::uint64_t id,
         std::int64_t most_bytes);
  ~making();
  making(const making&) = delete;
  making& operator=(const making&) = delete;

  /// What each rank offers, per host; the least counts.
  std::int64_t offered_bytes() const;
  /// The memory, with so many bytes agreed; null: none on any rank, because that is too little, no
  /// host has two ranks, or some system call has failed. Then `problem` says which on the rank
  /// where it did, and is empty on others. Collective, but only where the same number of bytes says
  /// so.
  std::unique_ptr<node_memory> finish(std::int64_t agreed_bytes, std::string& problem);

 private:
  struct part;
  std::unique_ptr<part> mine_;
};

}  // namespace railpass::internal
