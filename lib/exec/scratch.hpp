// SPDX-License-Identifier: BSL-1.0
//
// The scratch memory of calls. Programs have many communicators but run few calls at a time. So
// each call borrows memory from its thread while it runs, and communicators keep no scratch memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace railpass::internal {

namespace detail {

// A thread's spare memory: pieces for a call's schedule and for two packed copies. There is no
// destructor, because programs make calls after destructors have run.
struct spare_scratch {
  struct piece {
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
  };
  std::array<piece, 3> pieces{};
  bool is_watched = false, has_ended = false;

  piece& smallest() { return *std::ranges::min_element(pieces, {}, &piece::bytes); }
  piece& largest() { return *std::ranges::max_element(pieces, {}, &piece::bytes); }
  /// The smallest piece of at least `bytes` bytes; null: none.
  piece* smallest_of(std::int64_t bytes) {
    piece* best = nullptr;
    for (piece& one : pieces)
      if (one.bytes >= bytes && (!best || one.bytes < best->bytes)) best = &one;
    return best;
  }
};
[[gnu::tls_model("initial-exec")]] inline constinit thread_local spare_scratch spare{};

}  // namespace detail

/// Memory of one call, aligned to a cache line. Several calls of a thread may be under way at a
/// time, and another thread may end a call.
class scratch_memory {
 public:
  static constexpr std::int64_t cache_line = 64;

  scratch_memory() = default;
  scratch_memory(const scratch_memory&) = delete;
  scratch_memory& operator=(const scratch_memory&) = delete;
  ~scratch_memory() { release(); }

  /// Null before borrow() and after give_back().
  std::byte* get() const { return memory_; }

  /// Provides at least `bytes` bytes with undefined content: the memory that the call has, spare
  /// memory of this thread, or new memory. Throws std::bad_alloc.
  void borrow(std::int64_t bytes) {
    if (bytes <= bytes_) return;
    if (detail::spare_scratch::piece* const enough = detail::spare.smallest_of(bytes))
      return exchange_with(*enough);
    release();
    free(detail::spare.largest());  // which is too small for calls like this one
    memory_ = static_cast<std::byte*>(
        ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{cache_line}));
    bytes_ = bytes;
  }
  /// The calling thread keeps this memory for its next call, unless all its spare memory is larger.
  void give_back() {
    if (!detail::spare.is_watched) [[unlikely]]
      free_with_thread();
    if (!detail::spare.has_ended) {
      detail::spare_scratch::piece& least = detail::spare.smallest();
      if (bytes_ > least.bytes) exchange_with(least);
    }
    release();
  }
  /// Frees the spare memory of the calling thread.
  static void free_spare() {
    for (detail::spare_scratch::piece& one : detail::spare.pieces) free(one);
  }

 private:
  void exchange_with(detail::spare_scratch::piece& spare) {
    std::swap(memory_, spare.memory);
    std::swap(bytes_, spare.bytes);
  }
  static void free(detail::spare_scratch::piece& spare) {
    scratch_memory last;
    last.exchange_with(spare);
  }
  void release() {
    if (memory_) ::operator delete (memory_, std::align_val_t{cache_line});
    memory_ = nullptr;
    bytes_ = 0;
  }
  [[gnu::noinline]] static void free_with_thread() {
    struct end_of_thread {
      ~end_of_thread() {
        free_spare();
        detail::spare.has_ended = true;
      }
    };
    static thread_local const end_of_thread at_end;
    detail::spare.is_watched = true;
  }

  std::byte* memory_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace railpass::internal
