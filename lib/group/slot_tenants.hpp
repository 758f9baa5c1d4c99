// SPDX-License-Identifier: BSL-1.0
//
// The owners of the slots of a base's memory.
#pragma once

#include "lib/group/resource_book.hpp"

#include <array>
#include <cstdint>

namespace railpass::internal {

class base_lane;

/// The owner of a slot on this rank.
class slot_tenant {
 public:
  /// Number of its calls; equal on all its ranks once they are in the same call.
  virtual std::uint64_t calls() const = 0;
  /// False after a failure: then it is unknown what other ranks still read.
  virtual bool may_give_up_slot() const = 0;
  /// Called while no rank is in a call of the tenant. Destroys the tenant's memory_slot; does not
  /// throw.
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
    std::uint64_t calls_when_asked = ~std::uint64_t{0};  // at the last request for a slot
  };
  std::array<entry, resource_book::most_slots> of_slot;
};

}  // namespace railpass::internal
