// SPDX-License-Identifier: BSL-1.0
//
// The memory that a rank writes and other ranks of its node read: an acknowledgement and two rings
// of cells. The protocol is in railpass/schedule/cells.hpp.
//
// Communicators use the memory one after the other. The numbers of each communicator start after
// its predecessor's numbers. So nothing has to be cleared, and no rank waits for old content.
#pragma once

#include "lib/exec/call_mark.hpp"
#include "railpass/schedule/cells.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace railpass::internal {

/// Here a rank notes whose memory it is inside, and asks that rank for data that the kernel does
/// not let it copy: see lib/exec/relay.hpp. All words are accessed atomically.
struct relay_box {
  std::uint64_t entered;  // 1 + the rank whose memory is visited; 0: no visit
  std::uint64_t asked;    // number of questions so far, and the rank asked; see relay::asking
  std::uint64_t address, bytes, writes;
  alignas(64) std::uint64_t answered;  // the latest question answered, written by the rank asked
  alignas(64) std::byte portion[2048];
};

/// One rank's part of shared memory that another object owns. All zero at first. Other ranks only
/// read, except for readers_left and answers in the box. Numbers start at 0 for the communicator
/// that has the memory when this object is made.
class cell_region {
 public:
  /// By cell_ring; an opened buffer takes a line.
  static constexpr std::uint64_t num_cells[] = {16, 128};
  /// Keeps the largest alignment that the units of a message can need.
  static constexpr std::int64_t header_bytes = 16, line_bytes = 64;
  /// Distance of two cells: not a power of two, because caches would put all cells into one set.
  static constexpr std::int64_t cell_distance = cell_bytes + line_bytes;
  /// Whole pages.
  static constexpr std::int64_t bytes =
      (2 * line_bytes + std::int64_t(num_cells[0]) * cell_distance +
       std::int64_t(num_cells[1]) * line_bytes + std::int64_t(sizeof(relay_box)) + 4095) /
      4096 * 4096;

  cell_region() = default;
  explicit cell_region(std::byte* memory) : memory_(memory), begins_at_(beginning().load()) {}
  std::byte* memory() const { return memory_; }

  /// This rank reads no smaller numbers any more.
  void acknowledge(std::uint64_t number) const {
    acknowledged().store(begins_at_ + number, std::memory_order_release);
  }
  /// The first number that the rank may still read.
  std::uint64_t first_needed() const {
    return acknowledged().load(std::memory_order_acquire) - begins_at_;
  }
  /// Total of ranks that have left a communicator in which they read this region.
  std::atomic_ref<std::uint64_t> readers_left() const { return word_at(line_bytes); }
  /// The rank's process, if other ranks may copy from and to its memory; set once.
  pid_t process() const { return pid_t(process_word().load(std::memory_order_relaxed)); }
  void set_process(pid_t process) const {
    process_word().store(std::uint64_t(process), std::memory_order_relaxed);
  }
  /// The rank leaves the communicator's call of this number (from 1 on) to the MPI library.
  void note_native(std::uint64_t call) const {
    native_word().store(call, std::memory_order_relaxed);
  }
  std::uint64_t native_call() const { return native_word().load(std::memory_order_relaxed); }
  /// The complete content with this number, written in the call `of`, is in its cell.
  void show(cell_ring ring, std::uint64_t number, call_mark of) const {
    word_at(mark_of(ring, number)).store(of.bits(), std::memory_order_relaxed);
    shown(ring, number).store(begins_at_ + number + 1, std::memory_order_release);
  }
  bool shows(cell_ring ring, std::uint64_t number) const {
    return shown(ring, number).load(std::memory_order_acquire) == begins_at_ + number + 1;
  }
  /// The call that wrote the cell, once the cell shows that number.
  call_mark mark(cell_ring ring, std::uint64_t number) const {
    return call_mark::of_bits(word_at(mark_of(ring, number)).load(std::memory_order_relaxed));
  }
  std::byte* content(cell_ring ring, std::uint64_t number) const {
    return memory_ + offset_of(ring, number) + header_bytes;
  }

  relay_box& box() const { return *reinterpret_cast<relay_box*>(memory_ + box_offset); }
  /// Ordered after everything that this rank has written before; see relay.
  bool still_shows(cell_ring ring, std::uint64_t number) const {
    return shown(ring, number).load(std::memory_order_seq_cst) == begins_at_ + number + 1;
  }
  /// The rank shows nothing from now on.
  void hide_all(cell_ring ring) const {
    for (std::uint64_t n = 0; n < num_cells[std::size_t(ring)]; ++n)
      shown(ring, n).store(0, std::memory_order_seq_cst);
  }

  /// Prepares for the next communicator. The rank itself calls this while no rank reads. Objects
  /// made later have the new numbers, on all ranks.
  void begin_anew() const {
    beginning().store(acknowledged().load());
    note_native(0);
  }

 private:
  static constexpr std::int64_t box_offset = 2 * line_bytes +
                                             std::int64_t(num_cells[0]) * cell_distance +
                                             std::int64_t(num_cells[1]) * line_bytes;
  std::atomic_ref<std::uint64_t> process_word() const {
    return word_at(line_bytes + std::int64_t(sizeof(std::uint64_t)));
  }
  std::atomic_ref<std::uint64_t> acknowledged() const { return word_at(0); }
  // Offset of the present communicator's numbers.
  std::atomic_ref<std::uint64_t> beginning() const {
    return word_at(line_bytes + 2 * std::int64_t(sizeof(std::uint64_t)));
  }
  std::atomic_ref<std::uint64_t> native_word() const {
    return word_at(line_bytes + 3 * std::int64_t(sizeof(std::uint64_t)));
  }
  // 1 + the number of a cell's content.
  std::atomic_ref<std::uint64_t> shown(cell_ring ring, std::uint64_t number) const {
    return word_at(offset_of(ring, number));
  }
  // Offset of the call mark, after the number.
  static constexpr std::int64_t mark_of(cell_ring ring, std::uint64_t number) {
    return offset_of(ring, number) + std::int64_t(sizeof(std::uint64_t));
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
  std::uint64_t begins_at_ = 0;
};
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

/// The regions of the ranks of a communicator on one host. The size depends only on the number of
/// these ranks.
class cell_regions {
 public:
  struct entry {
    std::int32_t rank;
    cell_region region;
  };

  /// Afterwards `num_ranks` regions can be added without an allocation.
  void reserve(std::size_t num_ranks) { all_.reserve(num_ranks); }
  /// Ranks ascend.
  void add(std::int32_t rank, const cell_region& region) {
    if (all_.empty()) first_ = rank;
    all_.push_back({rank, region});
  }

  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  /// Without memory for a rank on another host.
  const cell_region& operator[](std::int32_t rank) const {
    // Mostly the ranks are consecutive.
    const auto guess = std::size_t(std::int64_t{rank} - first_);
    return guess < all_.size() && all_[guess].rank == rank ? all_[guess].region : find(rank);
  }

 private:
  [[gnu::noinline]] const cell_region& find(std::int32_t rank) const {
    static constexpr cell_region none;
    const auto found = std::ranges::lower_bound(all_, rank, {}, &entry::rank);
    return found != all_.end() && found->rank == rank ? found->region : none;
  }

  std::vector<entry> all_;
  std::int32_t first_ = 0;  // rank
};

}  // namespace railpass::internal
