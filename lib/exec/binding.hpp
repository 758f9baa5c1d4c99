// SPDX-License-Identifier: BSL-1.0
//
// What a schedule is run with: the user's memory, the sizes, and what only the caller knows of
// data.
#pragma once

#include "lib/exec/call_mark.hpp"
#include "railpass/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace railpass::internal {

/// The address `bytes` away: of a unit that may lie far outside the memory there is, or of
/// MPI_BOTTOM, where arithmetic on pointers is undefined.
inline std::byte* displaced(const std::byte* from, std::int64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(from) +
                                      static_cast<std::uintptr_t>(bytes));
}

/// What the executor does not know about the user's data. Codes are 0 or an error code, which
/// ends the call. The functions are called from inside the executor and must not throw.
struct data_hooks {
  void* user_data = nullptr;
  /// right = left op right, element by element, in the layout of the user's memory. Null: the
  /// schedule has no reduction.
  int (*reduce)(void* user_data, const std::byte* left, std::byte* right,
                std::int64_t units) = nullptr;
  /// Copies units from the user's layout to unit_bytes packed bytes each, and back without touching
  /// the gaps. Null, both: a unit is unit_bytes contiguous bytes, its extent is no larger.
  int (*pack)(void* user_data, const std::byte* memory, std::int64_t units,
              std::byte* packed) = nullptr;
  int (*unpack)(void* user_data, const std::byte* packed, std::int64_t units,
                std::byte* memory) = nullptr;
};

/// How units lie in memory where they are packed for sending; see MPI_Type_get_true_extent.
struct unit_layout {
  std::int64_t extent_bytes = 0;  ///< from one unit to the next, not negative
  std::int64_t true_lower_bound_bytes = 0;
  std::int64_t true_extent_bytes = 0;
  friend bool operator==(const unit_layout&, const unit_layout&) = default;
};

/// By their number.
using scratch_buffers = std::array<std::byte*, max_buffers - 2>;

/// What a schedule is run with. The memory stays the caller's. A rank that has memory for a part of
/// the message only gives the address where unit 0 would be.
struct binding {
  const std::byte* input = nullptr;  ///< address of unit 0, as MPI takes it; in place: the output's
  std::byte* output = nullptr;
  message_size size{};
  /// Where the blocks of the user's buffers are not where `size` says: block k of a virtual rank is
  /// units [begin, end) from the buffer's address, in any order. Only for schedules that name
  /// single blocks there (see spans_blocks), with num_ranks parts.
  std::span<const extent> input_blocks{};
  std::span<const extent> output_blocks{};
  std::int32_t root = 0;  ///< the physical rank of virtual rank 0
  /// Where virtual ranks are in the order of nodes: that order, which follows from the root.
  rank_order ranks{};
  /// Scratch buffers of the caller's, which phases pass on: where unit 0 of each would be.
  /// Borrowed; null: the executor has its own.
  const scratch_buffers* scratch = nullptr;
  data_hooks hooks{};
  unit_layout layout{};  ///< only looked at if there is a pack hook
  call_mark mark{};      ///< shared memory: the same on all ranks, or they make different calls
};

/// Whether a step names several blocks of the buffer at once: they must lie one behind the other
/// then.
inline bool spans_blocks(const schedule& s, buffer b) {
  return std::ranges::any_of(phases_of(s), [&](const schedule& phase) {
    return std::ranges::any_of(phase.steps, [&](const step& x) {
      const bool local = is_local(x.kind);
      return (x.blocks.count > 1 || x.blocks.parts != s.num_ranks) &&
             (x.to == b || (local && x.from == b));
    });
  });
}

}  // namespace railpass::internal
