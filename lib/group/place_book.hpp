// SPDX-License-Identifier: BSL-1.0
//
// What a rank knows of the places in a base, which communicators have one after the other: lanes
// for their messages, and slots of the memory that the ranks of each host share.
//
// A lane is free or in use. A slot is free, in use, or left: this rank's user is gone, but other
// ranks may still read what this one has shown there. Who wants places hears which ones are free,
// agrees with other ranks on some, and takes these, which looks once more: another thread may have
// had a place meanwhile. When a slot is taken its memory begins anew, so that nothing of the user
// before has a number of the next one's. On all ranks it has been taken before any of them uses it:
// by a reduction, or because no other thread can have had it since its memory began anew.
#pragma once

#include "lib/exec/cells.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace railpass::internal {

/// A bit for each of some places.
template <int Places>
class place_set {
 public:
  static constexpr int num_words = (Places + 63) / 64;

  bool has(int place) const { return (words_[index(place)] & bit(place)) != 0; }
  void add(int place) { words_[index(place)] |= bit(place); }
  void remove(int place) { words_[index(place)] &= ~bit(place); }
  std::span<const std::uint64_t, num_words> words() const { return words_; }

 private:
  static constexpr std::size_t index(int place) { return std::size_t(place) / 64; }
  static constexpr std::uint64_t bit(int place) { return std::uint64_t{1} << (place % 64); }
  std::array<std::uint64_t, num_words> words_{};
};

/// One base's, on this rank. Whoever calls holds the lock of all bases.
class place_book {
 public:
  static constexpr int num_lanes = 1024, most_slots = 8;
  using lane_set = place_set<num_lanes>;
  using slot_set = place_set<most_slots>;

  /// All lanes are free but the last one, which is nobody's.
  place_book() {
    for (int n = 0; n + 1 < num_lanes; ++n) lanes_.add(n);
  }
  /// A slot, with this rank's memory of it; without memory where no other rank reads it.
  void add_slot(cell_region own) { slots_[std::size_t(num_slots_++)].own = own; }

  const lane_set& free_lanes() const { return lanes_; }
  bool take_lane(int number) {
    if (!lanes_.has(number)) return false;
    lanes_.remove(number);
    return true;
  }
  void give_back_lane(int number) { lanes_.add(number); }

  /// The memory of those that are free begins anew.
  slot_set free_slots() {
    slot_set free;
    for (int n = 0; n < num_slots_; ++n)
      if (is_free(slots_[std::size_t(n)])) {
        slots_[std::size_t(n)].own_begins_anew();
        free.add(n);
      }
    return free;
  }
  /// False: it is not free any more. `all_have_left`: no rank reads it, although some may not have
  /// said so yet.
  bool take_slot(int number, bool all_have_left = false) {
    slot& wanted = slots_[std::size_t(number)];
    if (wanted.in_use || !(all_have_left || is_free(wanted))) return false;
    wanted.in_use = true;
    wanted.own_begins_anew();
    return true;
  }
  /// The user on this rank is gone; so many other ranks were to read what this one showed.
  void give_back_slot(int number, std::uint64_t readers) {
    slot& left = slots_[std::size_t(number)];
    left.in_use = false;
    left.readers += readers;
  }

 private:
  struct slot {
    cell_region own{};
    bool in_use = false;
    std::uint64_t readers = 0;  // that will have left this rank's memory once all have

    void own_begins_anew() {
      if (own.memory()) own.begin_anew();
    }
  };
  // Without threads, ranks of the next user may have left this one's memory before it has taken it.
  static bool is_free(const slot& s) {
    if (s.in_use || !s.own.memory()) return !s.in_use;
    return s.own.readers_left().load(std::memory_order_acquire) >= s.readers;
  }

  lane_set lanes_;
  std::array<slot, most_slots> slots_;
  int num_slots_ = 0;
};

}  // namespace railpass::internal
