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

/// The place of the cores that this process may use: the cache, NUMA node and socket that contain
/// all of them, each named by its first core.
struct cores_place {
  static constexpr std::int32_t anywhere = -1;
  std::int32_t cache = anywhere;
  std::int32_t numa_node = anywhere;
  std::int32_t socket = anywhere;

  /// To and from one non-negative word.
  std::int64_t packed() const;
  static cores_place unpacked(std::int64_t word);
  friend bool operator==(const cores_place&, const cores_place&) = default;
};

/// Empty if the kernel reports nothing, or beyond core 1023. Throws std::bad_alloc.
cores_place place_of_cores();

/// Numbers of the caches that ranks use, unique across hosts. Hosts on which a rank may use several
/// caches give NUMA nodes or sockets instead. Empty if no host has ranks under several caches.
/// `mark_of_rank`: of hosts; `place_of_rank`: packed. Throws std::bad_alloc.
std::vector<std::int32_t> find_caches(std::span<const std::int64_t> mark_of_rank,
                                      std::span<const std::int64_t> place_of_rank);

}  // namespace railpass::internal
