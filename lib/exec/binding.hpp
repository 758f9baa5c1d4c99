// SPDX-License-Identifier: BSL-1.0
//
// The data of a run of a schedule: the user's memory, sizes, and facts that only the caller knows.
#pragma once

#include "lib/exec/call_mark.hpp"
#include "railpass/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace railpass::internal {

/// The address `bytes` away, for units far outside the memory or for MPI_BOTTOM, where pointer
/// arithmetic is undefined.
inline std::byte* displaced(const std::byte* from, std::int64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(from) +
                                      static_cast<std::uintptr_t>(bytes));
}

/// Operations on the user's data that only the caller knows. They return 0 or an error code, which
/// ends the call. The executor calls them; they must not throw.
struct data_hooks {
  void* user_data = nullptr;
  /// right = left op right, element by element, in the layout of the user's memory. Null: the
  /// schedule has no reduction.
  int (*reduce)(void* user_data, const std::byte* left, std::byte* right,
                std::int64_t units) = nullptr;
  /// Copies units from the user's layout to unit_bytes packed bytes each, and back without touching
  /// the gaps. Both null: a unit is unit_bytes contiguous bytes, and its extent is no larger.
  int (*pack)(void* user_data, const std::byte* memory, std::int64_t units,
              std::byte* packed) = nullptr;
  int (*unpack)(void* user_data, const std::byte* packed, std::int64_t units,
                std::byte* memory) = nullptr;
};

/// Layout of units in memory that is packed for sending; see MPI_Type_get_true_extent.
struct unit_layout {
  std::int64_t extent_bytes = 0;  ///< from one unit to the next, not negative
  std::int64_t true_lower_bound_bytes = 0;
  std::int64_t true_extent_bytes = 0;
  friend bool operator==(const unit_layout&, const unit_layout&) = default;
};

/// By number.
using scratch_buffers = std::array<std::byte*, max_buffers - 2>;

/// The data of a run. The caller owns the memory. A rank with memory for only a part of the message
/// gives the address where unit 0 would be.
struct binding {
  const std::byte* input = nullptr;  ///< address of unit 0, as MPI takes it; in place: the output's
  std::byte* output = nullptr;
  message_size size{};
  /// The blocks of the user's buffers, if they differ from `size`: block k of a virtual rank is
  /// units [begin, end) from the buffer's address, in any order. Only for schedules that name
  /// single blocks there (see spans_blocks), with num_ranks parts.
  std::span<const extent> input_blocks{};
  std::span<const extent> output_blocks{};
  std::int32_t root = 0;  ///< the physical rank of virtual rank 0
  /// If virtual ranks are in the order of nodes: that order, which follows from the root.
  rank_order ranks{};
  /// Scratch buffers of the caller, which phases pass on: the address of unit 0 of each. Borrowed;
  /// null: the executor has separate buffers.
  const scratch_buffers* scratch = nullptr;
  data_hooks hooks{};
  unit_layout layout{};  ///< used only with a pack hook
  call_mark mark{};      ///< shared memory: differs between ranks only if their calls differ
};

}  // namespace railpass::internal
