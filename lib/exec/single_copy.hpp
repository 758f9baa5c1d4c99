// SPDX-License-Identifier: BSL-1.0
//
// A single copy by the kernel between the memories of two processes. Whether the kernel permits the
// copy depends on parent processes, containers and security modules, so railpass tries a copy
// first.
#pragma once

#include "lib/exec/copies.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

namespace railpass::internal {

namespace detail {

using copying_call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                 unsigned long);

// Returns the number of copied bytes: less than `bytes` after a failure, with errno.
inline std::size_t copied_bytes(copying_call call, pid_t process, std::byte* local,
                                std::byte* remote, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const iovec here{local + done, bytes - done}, there{remote + done, bytes - done};
    const ssize_t n = call(process, &here, 1, &there, 1, 0);
    if (n <= 0) break;
    done += std::size_t(n);
  }
  return done;
}

// Where the kernel's copy would be slow, portions go through memory with another alignment that
// stays in the cache.
inline bool goes_by_way(const std::byte* to, const std::byte* from) {
#if defined(__x86_64__)
  static const bool amd = __builtin_cpu_is("amd");
  return amd && follows_in_page(to, from);
#else
  (void)to, (void)from;
  return false;
#endif
}
struct way {
  static constexpr std::size_t page = 4096, portion = 32 * 1024;
  alignas(page) std::byte memory[portion + page];
  // Half a page away from the remote alignment.
  std::byte* off(const std::byte* remote) {
    return memory + (reinterpret_cast<std::uintptr_t>(remote) + page / 2) % page;
  }
};

}  // namespace detail

/// Copies from and to the memory of other processes. Functions return the number of copied bytes:
/// less than `bytes` after a failure, with errno.
class single_copies {
 public:
  /// Allocates the intermediate memory; throws std::bad_alloc.
  void prepare() {
    if (!by_) by_ = std::make_unique<detail::way>();
  }

  /// Copies from address `from` of the process.
  std::size_t copy_from(pid_t process, std::byte* from, std::byte* to, std::size_t bytes) const {
    if (!detail::goes_by_way(to, from))
      return detail::copied_bytes(::process_vm_readv, process, to, from, bytes);
    return in_portions(bytes, [&](std::size_t at, std::size_t n) {
      std::byte* const between = by_->off(from + at);
      const std::size_t done =
          detail::copied_bytes(::process_vm_readv, process, between, from + at, n);
      copy_bytes(to + at, between, std::int64_t(done));
      return done;
    });
  }
  /// Copies to address `to` of the process.
  std::size_t copy_to(pid_t process, std::byte* to, std::byte* from, std::size_t bytes) const {
    if (!detail::goes_by_way(to, from))
      return detail::copied_bytes(::process_vm_writev, process, from, to, bytes);
    return in_portions(bytes, [&](std::size_t at, std::size_t n) {
      std::byte* const between = by_->off(to + at);
      copy_bytes(between, from + at, std::int64_t(n));
      return detail::copied_bytes(::process_vm_writev, process, between, to + at, n);
    });
  }

 private:
  template <class Copy>
  static std::size_t in_portions(std::size_t bytes, const Copy& copy) {
    std::size_t done = 0;
    while (done < bytes) {
      const std::size_t n = std::min(bytes - done, detail::way::portion), copied = copy(done, n);
      done += copied;
      if (copied < n) break;
    }
    return done;
  }

  std::unique_ptr<detail::way> by_;  // too large for the stacks of some threads
};

/// Data that a process shows in shared memory, so that other processes can try a copy.
struct single_copy_probe {
  pid_t process = 0;
  std::uint64_t address = 0;  ///< of such a word in the process' own memory
  std::uint64_t word = 0;     ///< value there, which no other process is likely to hold

  /// The probe of this process.
  static single_copy_probe of(const std::uint64_t& word) {
    return {::getpid(), reinterpret_cast<std::uintptr_t>(&word), word};
  }
  /// Whether this process can copy from and to the memory of the process that shows the probe. The
  /// check is needed because the process number may belong to another process here.
  bool can_copy() const {
    std::uint64_t found = 0;
    auto* const local = reinterpret_cast<std::byte*>(&found);
    auto* const remote = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
    constexpr std::size_t bytes = sizeof found;
    return detail::copied_bytes(::process_vm_readv, process, local, remote, bytes) == bytes &&
           found == word &&
           detail::copied_bytes(::process_vm_writev, process, local, remote, bytes) == bytes;
  }
};

}  // namespace railpass::internal
