// SPDX-License-Identifier: BSL-1.0
//
// The memory of one run of a schedule, and the local work in this memory.
#pragma once

#include "lib/exec/binding.hpp"
#include "lib/exec/copies.hpp"
#include "lib/exec/scratch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace railpass::internal {

/// The user's buffers, and an arena for all other memory: scratch buffers and, if data must be
/// packed, a packed twin of each buffer that messages, copies or other ranks fill. Units are units
/// of the message; functions return 0 or the code of a hook.
class bound_memory {
 public:
  bound_memory() = default;
  bound_memory(const bound_memory&) = delete;
  bound_memory& operator=(const bound_memory&) = delete;

  const binding& bound() const { return binding_; }
  /// Takes the binding; buffers stay in place.
  void bind(const binding& b) { binding_ = b; }

  /// Lays out the buffers for another schedule or size. Borrows scratch memory, see scratch_memory.
  void lay_out(const schedule& s) {
    arena_bytes_ = scratch_bytes(s, binding_);
    arena_.borrow(arena_bytes_);
    lay_out_given();
    divide_arena(s);
  }
  /// Lays out the buffers for the same schedule and size: only the caller's buffers and perhaps the
  /// scratch memory have moved.
  void lay_out_again(const schedule& s) {
    lay_out_given();
    if (arena_bytes_ == 0) return;
    arena_.borrow(arena_bytes_);
    if (arena_.get() != divided_) divide_arena(s);
  }
  /// Call after the end, when nothing uses the call's buffers any more. A phase keeps its scratch
  /// memory, because later calls of the phases must not allocate.
  void give_back() {
    if (arena_bytes_ > 0 && !binding_.scratch) arena_.give_back();
  }
  /// The scratch buffers, for the next phase.
  scratch_buffers scratch() const {
    scratch_buffers all{};
    std::copy_n(memory_ + first_scratch, all.size(), all.begin());
    return all;
  }

  bool same(buffer a, buffer b) const {
    return memory_[static_cast<std::size_t>(a)] == memory_[static_cast<std::size_t>(b)];
  }
  /// The address where messages of the buffer start.
  const std::byte* message_memory(buffer b) const {
    return (binding_.hooks.pack ? mirror_ : memory_)[static_cast<std::size_t>(b)];
  }

  int reduce(buffer from, std::int64_t from_unit, buffer to, std::int64_t to_unit,
             std::int64_t units) const {
    return binding_.hooks.reduce(binding_.hooks.user_data, unit_address(from, from_unit),
                                 unit_address(to, to_unit), units);
  }
  int copy(buffer from_buffer, std::int64_t from_unit, buffer to_buffer, std::int64_t to_unit,
           std::int64_t units) const {
    const data_hooks& hooks = binding_.hooks;
    const std::byte* from = unit_address(from_buffer, from_unit);
    std::byte* to = unit_address(to_buffer, to_unit);
    if (!hooks.pack) {
      copy_bytes(to, from, units * binding_.size.unit_bytes);
      return 0;
    }
    std::byte* packed = packed_address(to_buffer, to_unit);
    const int packing = hooks.pack(hooks.user_data, from, units, packed);
    const int unpacking = hooks.unpack(hooks.user_data, packed, units, to);
    return packing != 0 ? packing : unpacking;
  }
  // --- to and from a cell of shared memory, which holds packed units

  int publish(buffer b, std::int64_t begin, std::int64_t units, std::byte* cell) const {
    const data_hooks& hooks = binding_.hooks;
    if (hooks.pack) return hooks.pack(hooks.user_data, unit_address(b, begin), units, cell);
    copy_bytes(cell, unit_address(b, begin), units * binding_.size.unit_bytes);
    return 0;
  }
  int fetch(const std::byte* cell, buffer b, std::int64_t begin, std::int64_t units) const {
    const data_hooks& hooks = binding_.hooks;
    if (hooks.unpack) return hooks.unpack(hooks.user_data, cell, units, unit_address(b, begin));
    copy_bytes(unit_address(b, begin), cell, units * binding_.size.unit_bytes);
    return 0;
  }
  int combine(const std::byte* cell, buffer b, std::int64_t begin, std::int64_t units) const {
    const data_hooks& hooks = binding_.hooks;
    const std::byte* left = cell;
    if (hooks.unpack) {
      left = memory_[staging];
      if (const int code = hooks.unpack(hooks.user_data, cell, units, memory_[staging]))
        return code;
    }
    return hooks.reduce(hooks.user_data, left, unit_address(b, begin), units);
  }

  /// The memory that other ranks copy from or to: the units, or their packed twin.
  std::byte* opened(buffer b, std::int64_t begin) const {
    return binding_.hooks.pack ? packed_address(b, begin) : unit_address(b, begin);
  }
  /// Copy between units and their packed twin, if there is a twin.
  int pack_opened(buffer b, std::int64_t begin, std::int64_t units) const {
    return binding_.hooks.pack ? pack(b, begin, units) : 0;
  }
  int unpack_opened(buffer b, std::int64_t begin, std::int64_t units) const {
    return binding_.hooks.unpack ? unpack(b, begin, units) : 0;
  }

  int pack(buffer b, std::int64_t begin, std::int64_t units) const {
    return binding_.hooks.pack(binding_.hooks.user_data, unit_address(b, begin), units,
                               packed_address(b, begin));
  }
  int unpack(buffer b, std::int64_t begin, std::int64_t units) const {
    return binding_.hooks.unpack(binding_.hooks.user_data, packed_address(b, begin), units,
                                 unit_address(b, begin));
  }

  /// Bytes of scratch memory that a call needs on this rank; the largest integer after an overflow.
  static std::int64_t scratch_bytes(const schedule& s, const binding& b) {
    std::int64_t sum = 0;
    if (b.size.units == 0) return 0;
    const bool fits = for_each_arena_part(s, b, [&](unsigned, bool, std::int64_t, std::int64_t n) {
      return n <= most_bytes - cache_line && !__builtin_add_overflow(sum, aligned(n), &sum);
    });
    return fits ? sum : most_bytes;
  }

 private:
  static constexpr unsigned first_scratch = unsigned(buffer::scratch0);
  static constexpr unsigned staging = max_buffers;  // for reductions of units with holes
  static constexpr std::int64_t cache_line = scratch_memory::cache_line;
  static constexpr std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();

  static std::int64_t aligned(std::int64_t bytes) {
    return (bytes + cache_line - 1) / cache_line * cache_line;
  }
  // Bytes from the first to the last byte of data in some units with the user's layout.
  static bool memory_bytes(const binding& b, std::int64_t units, std::int64_t* bytes) {
    const unit_layout& l = b.layout;
    if (!b.hooks.pack || units == 0)
      return !__builtin_mul_overflow(units, b.size.unit_bytes, bytes);
    return !__builtin_mul_overflow(units - 1, l.extent_bytes, bytes) &&
           !__builtin_add_overflow(*bytes, l.true_extent_bytes, bytes);
  }
  // Buffers that need a packed twin.
  static unsigned mirror_mask(const schedule& s, const binding& b) {
    unsigned mask = 0;
    if (b.hooks.pack)
      for (const step& x : s.steps)
        if (is_message(x.kind) || x.kind == step_kind::copy || opens_memory(x.kind) ||
            is_single_copy(x.kind))
          mask |= 1u << static_cast<unsigned>(x.to);
    return mask;
  }

  // Calls visit(buffer, is mirror, first unit, bytes) for all parts of the arena, until it returns
  // false. Returns false then, or after an overflow.
  template <class Visit>
  static bool for_each_arena_part(const schedule& s, const binding& b, Visit visit) {
    const unsigned mirrors = mirror_mask(s, b);
    for (unsigned i = 0; i < max_buffers; ++i) {
      const buffer_use& u = s.used[i];
      if (u.last == 0) continue;
      const extent used = blocks_extent(u.first, u.last - u.first, u.parts, b.size);
      std::int64_t bytes = 0;
      if (i >= first_scratch && !b.scratch)
        if (!memory_bytes(b, used.size(), &bytes) || !visit(i, false, used.begin, bytes))
          return false;
      if ((mirrors >> i & 1) == 0) continue;
      if (__builtin_mul_overflow(used.size(), b.size.unit_bytes, &bytes) ||
          !visit(i, true, used.begin, bytes))
        return false;
    }
    const bool unpacks_to_combine = b.hooks.pack && std::ranges::any_of(s.steps, [](const step& x) {
                                      return x.kind == step_kind::combine;
                                    });
    if (!unpacks_to_combine) return true;
    const std::int64_t units = std::min(b.size.units, b.size.segment_units(s.segment_bytes));
    std::int64_t bytes = 0;
    return memory_bytes(b, units, &bytes) && visit(staging, false, 0, bytes);
  }
  void lay_out_given() {
    // The input is never written: the builder's steps write to `to`, which is never the input.
    memory_[0] = const_cast<std::byte*>(binding_.input);
    memory_[1] = binding_.output;
    if (binding_.scratch) std::ranges::copy(*binding_.scratch, memory_ + first_scratch);
  }
  void divide_arena(const schedule& s) {
    divided_ = arena_.get();
    if (arena_bytes_ == 0) return;
    const bool packs = binding_.hooks.pack != nullptr;
    const std::int64_t shift = packs ? binding_.layout.true_lower_bound_bytes : 0;
    const std::int64_t distance = packs ? binding_.layout.extent_bytes : binding_.size.unit_bytes;
    std::byte* part = divided_;
    for_each_arena_part(s, binding_,
                        [&](unsigned i, bool mirror, std::int64_t first, std::int64_t bytes) {
                          if (mirror)
                            mirror_[i] = displaced(part, -first * binding_.size.unit_bytes);
                          else
                            memory_[i] = displaced(part, -shift - first * distance);
                          part += aligned(bytes);
                          return true;
                        });
  }
  std::byte* unit_address(buffer b, std::int64_t unit) const {
    const std::int64_t distance =
        binding_.hooks.pack ? binding_.layout.extent_bytes : binding_.size.unit_bytes;
    return displaced(memory_[static_cast<std::size_t>(b)], unit * distance);
  }
  std::byte* packed_address(buffer b, std::int64_t unit) const {
    return displaced(mirror_[static_cast<std::size_t>(b)], unit * binding_.size.unit_bytes);
  }

  binding binding_{};
  std::byte* memory_[max_buffers + 1] = {};
  std::byte* mirror_[max_buffers] = {};
  scratch_memory arena_;
  std::int64_t arena_bytes_ = 0;  // of the arena, needed by the call
  std::byte* divided_ = nullptr;  // the arena that contains the buffers above
};

}  // namespace railpass::internal
