// SPDX-License-Identifier: BSL-1.0
//
// A communicator gets a slot of the memory that the ranks of each host share, and loses the slot to
// another communicator while it is idle.
#pragma once

#include "lib/group/node_memory.hpp"
#include "lib/group/place_book.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace railpass::internal {

class base_lane;
class joint_lockstep;

/// The owner of a slot on this rank.
class slot_tenant {
 public:
  /// Calls that it has made, the same number on all its ranks once these are in the same call.
  virtual std::uint64_t calls() const = 0;
  /// False: something has failed, and it is not known what other ranks read.
  virtual bool may_give_up_slot() const = 0;
  /// No rank is in a call of it. Destroys its memory_slot, and does not throw.
  virtual void give_up_slot() = 0;

 protected:
  slot_tenant() = default;
  ~slot_tenant() = default;
};

/// The tenants of a base, by slot.
struct slot_tenants {
  struct entry {
    slot_tenant* who = nullptr;
    const base_lane* lane = nullptr;
    std::uint64_t calls_when_asked = ~std::uint64_t{0};  // when somebody last wanted a slot
  };
  std::array<entry, place_book::most_slots> of_slot;
};

/// A slot that has been taken, and this rank's use of its memory. The tenant is asked to give the
/// slot up only where no rank has MPI_THREAD_MULTIPLE.
class memory_slot {
 public:
  /// `lane` and `tenant` outlive it. `room` as node_memory::use wants it. Allocates nothing.
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
  bool may_evict = false;         ///< an idle tenant may have to go
  bool ready = true;              ///< this rank can use one: not known alike
};

/// Takes a slot for ranks whose base shares memory. Returns -1 if no slot is free, or if a rank has
/// left the others. An idle tenant gives its slot up if all its ranks are among these, each has
/// made as many calls as the others, at least one, and none since somebody wanted a slot before.
/// Collective.
int take_memory_slot(joint_lockstep& ranks, const slot_request& request);

/// The request's `free_on_all`, agreed on anew; none if one rank is not `ready`. Collective.
std::uint64_t free_slots_on_all(joint_lockstep& ranks, bool ready);

}  // namespace railpass::internal
