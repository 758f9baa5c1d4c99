// SPDX-License-Identifier: BSL-1.0
//
// The scratch memory of calls. Programs have many communicators but run few calls at a time. So
// each call borrows memory from its thread while it runs, and communicators keep no scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace railpass::internal {

namespace detail {

// Per thread. Has no destructor, because programs make calls after destructors have run.
struct spare_scratch {
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
  bool is_watched = false, has_ended = false;
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

  /// Provides at least `bytes` bytes with undefined content: the memory that the call has, the
  /// spare memory of this thread, or new memory. Throws std::bad_alloc.
  void borrow(std::int64_t bytes) {
    if (bytes <= bytes_) return;
    if (bytes <= detail::spare.bytes) return exchange_with_spare();
    release();
    free_spare();
    memory_ = static_cast<std::byte*>(
        ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{cache_line}));
    bytes_ = bytes;
  }
  /// The calling thread keeps this memory for its next call, unless its spare memory is larger.
  void give_back() {
    if (!detail::spare.is_watched) [[unlikely]]
      free_with_thread();
    if (bytes_ > detail::spare.bytes && !detail::spare.has_ended) exchange_with_spare();
    release();
  }
  /// Frees the spare memory of the calling thread.
  static void free_spare() {
    scratch_memory last;
    last.exchange_with_spare();
  }

 private:
  void exchange_with_spare() {
    std::swap(memory_, detail::spare.memory);
    std::swap(bytes_, detail::spare.bytes);
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
