// SPDX-License-Identifier: BSL-1.0
//
// The memory that a rank writes and the other ranks of its node read: its acknowledgement, and two
// rings of cells. How ranks take turns with it is in railpass/schedule/cells.hpp.
//
// Communicators use it one after the other. The numbers of each begin behind those of the one
// before, so that nothing in the memory has to be cleared, and what is left of a communicator is
// nothing that another one waits for.
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

/// Where a rank says that it is inside another one's memory, and asks that one for what the kernel
/// does not let it copy: see lib/exec/relay.hpp. Words are those of atomic operations.
struct relay_box {
  std::uint64_t entered;  // 1 + the rank whose memory it is in; 0: none
  std::uint64_t asked;    // how often so far, and which rank; see relay::asking
  std::uint64_t address, bytes, writes;
  alignas(64) std::uint64_t answered;  // what was asked last, by the rank that was asked
  alignas(64) std::byte portion[2048];
};

/// One rank's part of some shared memory, which stays somebody else's. All zero at the beginning.
/// What is of another rank may be read only, but for readers_left and answers in its box. Numbers
/// are those of the communicator that has the memory when this is made, from 0 on.
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
       std::int64_t(num_cells[1]) * line_bytes + std::int64_t(sizeof(relay_box)) + 4095) /
      4096 * 4096;

  cell_region() = default;
  explicit cell_region(std::byte* memory) : memory_(memory), begins_at_(beginning().load()) {}
  std::byte* memory() const { return memory_; }

  /// Numbers below are not read any more by this rank.
  void acknowledge(std::uint64_t number) const {
    acknowledged().store(begins_at_ + number, std::memory_order_release);
  }
  /// The first number that may still be read by the rank.
  std::uint64_t first_needed() const {
    return acknowledged().load(std::memory_order_acquire) - begins_at_;
  }
  /// Ranks that have left a communicator in which they read this region, all together so far.
  std::atomic_ref<std::uint64_t> readers_left() const { return word_at(line_bytes); }
  /// Of the rank, where others may copy from and to its memory; it is set once.
  pid_t process() const { return pid_t(process_word().load(std::memory_order_relaxed)); }
  void set_process(pid_t process) const {
    process_word().store(std::uint64_t(process), std::memory_order_relaxed);
  }
  /// The rank leaves the communicator's call of that number, from 1 on, to the MPI library.
  void note_native(std::uint64_t call) const {
    native_word().store(call, std::memory_order_relaxed);
  }
  std::uint64_t native_call() const { return native_word().load(std::memory_order_relaxed); }
  /// All of what has that number, and is of that call, is in its cell.
  void show(cell_ring ring, std::uint64_t number, call_mark of) const {
    word_at(mark_of(ring, number)).store(of.bits(), std::memory_order_relaxed);
    shown(ring, number).store(begins_at_ + number + 1, std::memory_order_release);
  }
  bool shows(cell_ring ring, std::uint64_t number) const {
    return shown(ring, number).load(std::memory_order_acquire) == begins_at_ + number + 1;
  }
  /// Of the call in which the cell was written, once it shows that number.
  call_mark mark(cell_ring ring, std::uint64_t number) const {
    return call_mark::of_bits(word_at(mark_of(ring, number)).load(std::memory_order_relaxed));
  }
  std::byte* content(cell_ring ring, std::uint64_t number) const {
    return memory_ + offset_of(ring, number) + header_bytes;
  }

  relay_box& box() const { return *reinterpret_cast<relay_box*>(memory_ + box_offset); }
  /// After whatever this rank has written before; see relay.
  bool still_shows(cell_ring ring, std::uint64_t number) const {
    return shown(ring, number).load(std::memory_order_seq_cst) == begins_at_ + number + 1;
  }
  /// The rank shows nothing any more, for good.
  void hide_all(cell_ring ring) const {
    for (std::uint64_t n = 0; n < num_cells[std::size_t(ring)]; ++n)
      shown(ring, n).store(0, std::memory_order_seq_cst);
  }

  /// For another communicator. By the rank itself, where nobody reads; the next cell_region has the
  /// new numbers, on all ranks.
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
  // What numbers of the present communicator are counted from.
  std::atomic_ref<std::uint64_t> beginning() const {
    return word_at(line_bytes + 2 * std::int64_t(sizeof(std::uint64_t)));
  }
  std::atomic_ref<std::uint64_t> native_word() const {
    return word_at(line_bytes + 3 * std::int64_t(sizeof(std::uint64_t)));
  }
  // 1 + the number of what is in a cell.
  std::atomic_ref<std::uint64_t> shown(cell_ring ring, std::uint64_t number) const {
    return word_at(offset_of(ring, number));
  }
  // Behind that.
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

/// The regions of those ranks of a communicator that are on one host: no more is kept, however many
/// ranks there are.
class cell_regions {
 public:
  struct entry {
    std::int32_t rank;
    cell_region region;
  };

  /// So many can be added then without an allocation.
  void reserve(std::size_t num_ranks) { all_.reserve(num_ranks); }
  /// Ranks ascend.
  void add(std::int32_t rank, const cell_region& region) {
    if (all_.empty()) first_ = rank;
    all_.push_back({rank, region});
  }

  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  /// Without memory: that of a rank on another host.
  const cell_region& operator[](std::int32_t rank) const {
    // Mostly they follow one another.
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
