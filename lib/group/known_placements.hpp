// SPDX-License-Identifier: BSL-1.0
//
// The tables of ranks of this process' communicators: those with the same placement share one.
#pragma once

#include "railpass/schedule/nodes.hpp"

#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace railpass::internal {

/// Several threads may ask.
class known_placements {
 public:
  /// An equal placement that a communicator already has, else `own`. Cannot fail: if memory is
  /// short, later communicators have separate tables.
  std::shared_ptr<const placement> share(std::shared_ptr<const placement> own) {
    if (!own->has_tables()) return own;
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& known) { return known.expired(); });
    for (const std::weak_ptr<const placement>& known : all_)
      if (auto same = known.lock(); same && *same == *own) return same;
    try {
      all_.push_back(own);
    } catch (const std::bad_alloc&) {
    }
    return own;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<const placement>> all_;
};

}  // namespace railpass::internal
