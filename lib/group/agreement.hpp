// SPDX-License-Identifier: BSL-1.0
//
// The agreement: the reduction by which the ranks of a communicator start tuning.
#pragma once

#include "lib/group/base.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace railpass::internal {

/// Each rank fills in its own values; agree() leaves what holds on all ranks.
class agreement {
 public:
  /// A rank that has filled in nothing hinders no other rank, but has made no part and no base.
  agreement() {
    words_[settings] = words_[settings + 1] = ~std::uint64_t{0};
    words_[name] = ~std::uint64_t{0};
    set_pair(base_id_word, 0);
  }

  /// Facts that hold on this rank and, after agree(), on all ranks.
  enum flag : unsigned {
    lenient,
    enabled,
    pays,
    no_device,
    names_rails,
    names_no_rails,
    says_worth,  // a summary or a dump is requested
    made_its_part,
    may_make_communicators,
    has_room_for_base,
    one_world,
    one_thread
  };
  void set(flag f, bool value) {
    const std::uint64_t bit = std::uint64_t{1} << f;
    words_[flags] = value ? words_[flags] | bit : words_[flags] & ~bit;
  }
  bool all(flag f) const { return (words_[flags] >> f & 1) != 0; }

  /// The mark of the algorithms that this rank must not use, see select::exclusions.
  void set_exclusions(std::uint64_t mark) { set_pair(exclusions, mark); }
  bool same_exclusions() const { return is_equal(exclusions); }

  /// The hash of the settings, which must be equal on all ranks.
  void set_settings(std::uint64_t hash) { set_pair(settings, hash); }
  bool same_settings() const {
    return is_equal(settings) || (words_[settings] & words_[settings + 1]) == ~std::uint64_t{0};
  }

  /// Rank 0 names the communicator. No other communicator has the name, in this run or another.
  void set_name(std::uint64_t of_communicator) { words_[name] = of_communicator; }
  std::uint64_t name_of_communicator() const { return words_[name]; }

  /// See mark_of_clock.
  void set_clock(std::uint64_t mark) {
    if (mark != 0) set_pair(clock, mark);
  }
  /// Whether all ranks measure by the same clock.
  bool same_clock() const { return is_equal(clock); }

  /// The base in which this rank would take its lane, and the free lanes and slots there.
  void offer(std::uint64_t base_id, const resource_book::lane_set& free,
             const resource_book::slot_set& free_slots) {
    set_pair(base_id_word, base_id);
    words_[slots] = free_slots.words()[0];
    std::ranges::copy(free.words(), words_.begin() + lanes);
  }
  bool same_base() const { return is_equal(base_id_word); }
  bool no_base() const { return same_base() && words_[base_id_word] == 0; }
  /// The first lane that is free on all ranks, or -1.
  int common_lane() const;
  /// The first slot that is free on all ranks, or -1.
  int first_slot() const { return words_[slots] == 0 ? -1 : std::countr_zero(words_[slots]); }

  /// Collective over `comm`. Returns an MPI error code.
  int agree(MPI_Comm comm) {
    return PMPI_Allreduce(MPI_IN_PLACE, words_.data(), int(words_.size()), MPI_UINT64_T, MPI_BAND,
                          comm);
  }

 private:
  // In a pair, the second word is the complement of the first. Under AND, both words survive only
  // if all ranks have the same value.
  enum word : std::size_t {
    settings,
    exclusions = settings + 2,
    name = exclusions + 2,
    base_id_word,
    clock = base_id_word + 2,
    flags = clock + 2,
    slots,
    lanes
  };
  void set_pair(std::size_t first, std::uint64_t value) {
    words_[first] = value;
    words_[first + 1] = ~value;
  }
  bool is_equal(std::size_t first) const { return words_[first] == ~words_[first + 1]; }

  std::array<std::uint64_t, std::size_t(lanes) + resource_book::lane_set::num_words> words_{};
};

inline int agreement::common_lane() const {
  for (std::size_t i = lanes; i < words_.size(); ++i)
    if (words_[i] != 0) return int(64 * (i - lanes)) + std::countr_zero(words_[i]);
  return -1;
}

}  // namespace railpass::internal
