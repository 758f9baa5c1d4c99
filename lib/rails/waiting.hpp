// SPDX-License-Identifier: BSL-1.0
//
// How a rank that waits for its rails looks for what comes, gives its core away, and sleeps.
#pragma once

#include "lib/base/yielding.hpp"
#include "railpass/transport/packet_rail.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace railpass::internal {

/// Several threads may wait at once.
class waiting {
 public:
  /// A rail that advances only while it is polled keeps all from sleeping.
  explicit waiting(std::span<const std::unique_ptr<transport::packet_rail>> rails);

  /// Nothing has moved `empty` times in a row: keeps on looking for a while, which is the shorter
  /// the less often that was worth it, then gives the core away, then sleeps until something comes,
  /// for at most 200 us. Whether it has slept.
  bool give_way(unsigned empty);

 private:
  std::vector<int> descriptors_;  // of the rails; empty: it cannot sleep
  yielding yields_{true};
  std::atomic<unsigned> patience_;  // polls of which nothing came before it sleeps
};

}  // namespace railpass::internal
