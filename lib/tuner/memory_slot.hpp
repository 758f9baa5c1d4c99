// SPDX-License-Identifier: BSL-1.0
//
// How a communicator gets a slot of the memory that the ranks of each host share, and how an idle
// communicator loses its slot. The memory itself is in node_memory.hpp.
#pragma once

#include "lib/group/node_memory.hpp"
#include "lib/group/slot_tenants.hpp"

#include <cstdint>

namespace railpass::internal {

class base_lane;
class joint_lockstep;

/// A slot that has been taken, and this rank's use of its memory. The tenant may have to give up
/// the slot only if no rank has MPI_THREAD_MULTIPLE.
class memory_slot {
 public:
  /// `lane` and `tenant` must outlive this object. `room`: see node_memory::use. Allocates nothing.
  memory_slot(const base_lane& lane, int number, slot_tenant& tenant, cell_regions room);
  ~memory_slot();
  memory_slot(const memory_slot&) = delete;
  memory_slot& operator=(const memory_slot&) = delete;

  const cell_regions& regions() const { return use_.regions(); }

 private:
  const base_lane& lane_;
  int number_;
  node_memory::use use_;
};

/// The knowledge of a communicator's ranks before they take a slot. All fields but `ready` are
/// equal on all ranks.
struct slot_request {
  std::uint64_t free_on_all = 0;  ///< a bit for each slot
  bool one_thread = false;        ///< no rank has MPI_THREAD_MULTIPLE
  bool may_evict = false;         ///< an idle tenant may have to leave
  bool ready = true;              ///< this rank can use a slot; may differ between ranks
};

/// Takes a slot for ranks whose base shares memory. Returns -1 if no slot is free, or if a rank has
/// left. An idle tenant gives up its slot if all its ranks take part, have made the same number of
/// calls (at least one), and have made no call since the previous request for a slot. Collective.
int take_memory_slot(joint_lockstep& ranks, const slot_request& request);

/// Determines the request's `free_on_all` again; no slot if a rank is not `ready`. Collective.
std::uint64_t free_slots_on_all(joint_lockstep& ranks, bool ready);

}  // namespace railpass::internal
