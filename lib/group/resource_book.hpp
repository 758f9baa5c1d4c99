// SPDX-License-Identifier: BSL-1.0
//
// A rank's view of the resources of a base: lanes for messages, and slots of the memory that the
// ranks of each host share. Communicators use resources one after the other.
//
// A lane is free or in use. A slot is free, in use, or left: this rank's user is gone, but other
// ranks may still read what this rank has shown there. A communicator asks which resources are
// free, agrees with other ranks on free resources, and takes them. Taking checks again, because
// another thread may have taken a resource meanwhile. The memory of a slot starts anew when the
// slot is taken, so that old content has no number of the next user. Every rank has taken a slot
// before any rank uses the slot: by a reduction, or because no other thread can have had the slot
// since its memory started anew.
#pragma once

#include "lib/exec/cells.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace railpass::internal {

/// A set of numbers below `Most`.
template <int Most>
class number_set {
 public:
  static constexpr int num_words = (Most + 63) / 64;

  bool has(int number) const { return (words_[index(number)] & bit(number)) != 0; }
  void add(int number) { words_[index(number)] |= bit(number); }
  void remove(int number) { words_[index(number)] &= ~bit(number); }
  std::span<const std::uint64_t, num_words> words() const { return words_; }

 private:
  static constexpr std::size_t index(int number) { return std::size_t(number) / 64; }
  static constexpr std::uint64_t bit(int number) { return std::uint64_t{1} << (number % 64); }
  std::array<std::uint64_t, num_words> words_{};
};

/// The lanes and slots of one base on this rank. The caller holds the lock of all bases.
class resource_book {
 public:
  static constexpr int num_lanes = 1024, most_slots = 8;
  using lane_set = number_set<num_lanes>;
  using slot_set = number_set<most_slots>;

  /// All lanes are free but the last lane, which no communicator gets.
  resource_book() {
    for (int n = 0; n + 1 < num_lanes; ++n) lanes_.add(n);
  }
  /// Adds a slot with this rank's memory, or without memory if no other rank reads it.
  void add_slot(cell_region own) { slots_[std::size_t(num_slots_++)].own = own; }

  const lane_set& free_lanes() const { return lanes_; }
  bool take_lane(int number) {
    if (!lanes_.has(number)) return false;
    lanes_.remove(number);
    return true;
  }
  void give_back_lane(int number) { lanes_.add(number); }

  /// Returns the free slots. Their memory starts anew.
  slot_set free_slots() {
    slot_set free;
    for (int n = 0; n < num_slots_; ++n)
      if (is_free(slots_[std::size_t(n)])) {
        slots_[std::size_t(n)].own_begins_anew();
        free.add(n);
      }
    return free;
  }
  /// Returns false if the slot is no longer free. `all_have_left`: no rank reads the slot, although
  /// some ranks may not have reported so yet.
  bool take_slot(int number, bool all_have_left = false) {
    slot& wanted = slots_[std::size_t(number)];
    if (wanted.in_use || !(all_have_left || is_free(wanted))) return false;
    wanted.in_use = true;
    wanted.own_begins_anew();
    return true;
  }
  /// This rank's user is gone. `readers`: other ranks that were to read this rank's memory.
  void give_back_slot(int number, std::uint64_t readers) {
    slot& left = slots_[std::size_t(number)];
    left.in_use = false;
    left.readers += readers;
  }

 private:
  struct slot {
    cell_region own{};
    bool in_use = false;
    std::uint64_t readers = 0;  // readers_left() reaches this once all readers have left

    void own_begins_anew() {
      if (own.memory()) own.begin_anew();
    }
  };
  // Without threads, the next user's ranks may leave this rank's memory before it has taken the
  // slot.
  static bool is_free(const slot& s) {
    if (s.in_use || !s.own.memory()) return !s.in_use;
    return s.own.readers_left().load(std::memory_order_acquire) >= s.readers;
  }

  lane_set lanes_;
  std::array<slot, most_slots> slots_;
  int num_slots_ = 0;
};

}  // namespace railpass::internal
