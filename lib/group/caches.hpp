// SPDX-License-Identifier: BSL-1.0
//
// Which ranks of a host are near each other: the cores of some share their last cache, or a NUMA
// node, or a socket. From what the kernel says of the cores that a rank may use; how much nearer
// that is, `railpass sample` measures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace railpass::internal {

/// Where the cores are that this process may use: a cache, NUMA node and socket if all are there,
/// each by its first core.
struct cores_place {
  static constexpr std::int32_t anywhere = -1;
  std::int32_t cache = anywhere;
  std::int32_t numa_node = anywhere;
  std::int32_t socket = anywhere;

  /// In one word, which is not negative, and back.
  std::int64_t packed() const;
  static cores_place unpacked(std::int64_t word);
  friend bool operator==(const cores_place&, const cores_place&) = default;
};

/// Nothing is known where the kernel does not tell, or beyond core 1023. Throws std::bad_alloc.
cores_place place_of_cores();

/// Numbers of the caches that ranks use, on no two hosts the same; of NUMA nodes or sockets instead
/// on hosts where some rank may use several caches. Empty if no host has ranks under several.
/// `mark_of_rank`: of hosts; `place_of_rank`: packed. Throws std::bad_alloc.
std::vector<std::int32_t> find_caches(std::span<const std::int64_t> mark_of_rank,
                                      std::span<const std::int64_t> place_of_rank);

}  // namespace railpass::internal
