// SPDX-License-Identifier: BSL-1.0
//
// Finds ranks of a host that are near each other: their cores share a last-level cache, a NUMA node
// or a socket. The kernel reports the cores that a rank may use; `railpass sample` measures the
// difference in speed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace railpass::internal {

/// Where a process may run: the cache, NUMA node and socket that contain all cores that the process
/// may use, each named by its first core.
struct core_affinity {
  static constexpr std::int32_t anywhere = -1;
  std::int32_t cache = anywhere;
  std::int32_t numa_node = anywhere;
  std::int32_t socket = anywhere;

  /// To and from one non-negative word.
  std::int64_t packed() const;
  static core_affinity unpacked(std::int64_t word);
  friend bool operator==(const core_affinity&, const core_affinity&) = default;
};

/// Empty if the kernel reports nothing, or beyond core 1023. Throws std::bad_alloc.
core_affinity own_affinity();

/// Numbers of the caches that ranks use, unique across hosts. Hosts on which a rank may use several
/// caches give NUMA nodes or sockets instead. Empty if no host has ranks under several caches.
/// `mark_of_rank`: of hosts; `affinity_of_rank`: packed. Throws std::bad_alloc.
std::vector<std::int32_t> find_caches(std::span<const std::int64_t> mark_of_rank,
                                      std::span<const std::int64_t> affinity_of_rank);

}  // namespace railpass::internal
