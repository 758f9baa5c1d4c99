// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/clock.hpp"

#include <cstdint>
#include <span>

namespace railpass {

/// A rank that a call waits for.
struct awaited_peer {
  std::int32_t rank = 0;      ///< physical
  std::int32_t sends = 0;     ///< messages to it that have not ended
  std::int32_t receives = 0;  ///< messages from it that have not ended
};

/// Who is asked, and told, while a call waits. Both are called from inside the wait loop.
struct wait_watch {
  clock_function clock = steady_clock_s;
  double after_s = 0;  ///< when `report` is called, once per call; 0: never
  void (*report)(void* user_data, std::span<const awaited_peer>) = nullptr;
  /// Now and then while nothing moves: a code that is not 0 ends the call with it.
  int (*look)(void* user_data) = nullptr;
  void* user_data = nullptr;
};

}  // namespace railpass
