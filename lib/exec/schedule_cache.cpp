// SPDX-License-Identifier: BSL-1.0
#include "lib/exec/schedule_cache.hpp"

#include <atomic>
#include <cstdint>

namespace railpass::internal {

namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return 1 + last.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

schedule numbered(schedule s) {
  s.serial = next_serial();
  for (schedule& phase : s.phases) phase.serial = next_serial();
  return s;
}

}  // namespace railpass::internal
