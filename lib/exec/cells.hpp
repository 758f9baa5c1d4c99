// SPDX-License-Identifier: BSL-1.0
//
// The memory that a rank writes and the other ranks of its node read: its acknowledgement, and two
// rings of cells. How ranks take turns with it is in railpass/schedule/cells.hpp.
#pragma once

#include "railpass/schedule/cells.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace railpass {

/// One rank's part of some shared memory, which stays somebody else's. All zero at the beginning.
/// What is of another rank may be read only, but for readers_left.
class cell_region {
 public:
  /// By cell_ring: what is opened takes a line.
  static constexpr std::uint64_t num_cells[] = {16, 128};
  /// The largest alignment that the units of a message can need is kept.
  static constexpr std::int64_t header_bytes = 16, line_bytes = 64;
  /// From one cell to the next: not a power of two, as caches would put all of them in one set.
  static constexpr std::int64_t cell_distance = cell_bytes + line_bytes;
  /// Whole pages.
  static constexpr std::int64_t bytes =
      (2 * line_bytes + std::int64_t(num_cells[0]) * cell_distance +
       std::int64_t(num_cells[1]) * line_bytes + 4095) /
      4096 * 4096;

  cell_region() = default;
  explicit cell_region(std::byte* memory) : memory_(memory) {}
  std::byte* memory() const { return memory_; }

  /// Numbers below are not read any more by this rank.
  std::atomic_ref<std::uint64_t> acknowledged() const { return word_at(0); }
  /// Ranks that have left a communicator in which they read this region, all together so far.
  std::atomic_ref<std::uint64_t> readers_left() const { return word_at(line_bytes); }
  /// Of the rank, where others may copy from and to its memory; it is set once.
  pid_t process() const { return pid_t(process_word().load(std::memory_order_relaxed)); }
  void set_process(pid_t process) const {
    process_word().store(std::uint64_t(process), std::memory_order_relaxed);
  }
  /// 1 + the number of what is in a cell, once all of it is there.
  std::atomic_ref<std::uint64_t> shown(cell_ring ring, std::uint64_t number) const {
    return word_at(offset_of(ring, number));
  }
  std::byte* content(cell_ring ring, std::uint64_t number) const {
    return memory_ + offset_of(ring, number) + header_bytes;
  }

  /// As at the beginning, but for readers_left and the process. Only where nobody reads.
  void reset() const {
    for (const cell_ring ring : {cell_ring::published, cell_ring::opened})
      for (std::uint64_t n = 0; n < num_cells[std::size_t(ring)]; ++n)
        shown(ring, n).store(0, std::memory_order_relaxed);
    acknowledged().store(0, std::memory_order_seq_cst);
  }

 private:
  std::atomic_ref<std::uint64_t> process_word() const {
    return word_at(line_bytes + std::int64_t(sizeof(std::uint64_t)));
  }
  static constexpr std::int64_t offset_of(cell_ring ring, std::uint64_t number) {
    const auto n = std::int64_t(number % num_cells[std::size_t(ring)]);
    return ring == cell_ring::published
               ? 2 * line_bytes + n * cell_distance
               : 2 * line_bytes + std::int64_t(num_cells[0]) * cell_distance + n * line_bytes;
  }
  std::atomic_ref<std::uint64_t> word_at(std::int64_t offset) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_ + offset));
  }

  std::byte* memory_ = nullptr;
};
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

}  // namespace railpass
