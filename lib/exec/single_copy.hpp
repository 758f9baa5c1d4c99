// SPDX-License-Identifier: BSL-1.0
//
// One copy from the memory of one process to that of another, which the kernel makes. Whether it
// does depends on who started whom, on containers and on security modules: it is tried before it is
// relied on.
#pragma once

#include "lib/exec/copies.hpp"
#include "railpass/base/error.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>

namespace railpass {

namespace detail {

using copying_call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                 unsigned long);

// How many bytes it copied: fewer than all where it failed, as errno says then.
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

inline void copy_all(copying_call call, const char* what, pid_t process, std::byte* local,
                     std::byte* remote, std::size_t bytes) {
  const std::size_t done = copied_bytes(call, process, local, remote, bytes);
  if (done == bytes) return;
  const int code = errno;
  throw error(std::string(what) + " " + std::to_string(bytes) + " bytes of the memory of process " +
              std::to_string(process) + ": " + std::generic_category().message(code) + " after " +
              std::to_string(done));
}

// Where the kernel's copy would be slow, portions go by way of memory that lies otherwise and stays
// in the cache.
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
  // Half a page away from both.
  std::byte* off(const std::byte* remote) {
    return memory + (reinterpret_cast<std::uintptr_t>(remote) + page / 2) % page;
  }
};

}  // namespace detail

/// Copies `bytes` from address `from` of the process. Throws error if the kernel does not.
inline void copy_from(pid_t process, std::byte* from, std::byte* to, std::size_t bytes) {
  const auto read = [&](std::byte* where, std::size_t n) {
    detail::copy_all(::process_vm_readv, "reading", process, where, from, n);
  };
  if (!detail::goes_by_way(to, from)) return read(to, bytes);
  detail::way by;
  for (std::size_t n = 0; bytes > 0; from += n, to += n, bytes -= n) {
    n = std::min(bytes, by.portion);
    read(by.off(from), n);
    copy_bytes(to, by.off(from), std::int64_t(n));
  }
}
/// Copies `bytes` to its address `to`.
inline void copy_to(pid_t process, std::byte* to, std::byte* from, std::size_t bytes) {
  const auto write = [&](std::byte* where, std::size_t n) {
    detail::copy_all(::process_vm_writev, "writing", process, where, to, n);
  };
  if (!detail::goes_by_way(to, from)) return write(from, bytes);
  detail::way by;
  for (std::size_t n = 0; bytes > 0; from += n, to += n, bytes -= n) {
    n = std::min(bytes, by.portion);
    copy_bytes(by.off(to), from, std::int64_t(n));
    write(by.off(to), n);
  }
}

/// What a process shows, in memory that it shares, so that others can try.
struct single_copy_probe {
  pid_t process = 0;
  std::uint64_t address = 0;  ///< of such a word in its own memory
  std::uint64_t word = 0;     ///< what it holds, which another process will hardly hold there

  /// Of this process.
  static single_copy_probe of(const std::uint64_t& word) {
    return {::getpid(), reinterpret_cast<std::uintptr_t>(&word), word};
  }
  /// Whether this process can copy from and to the memory of the one that shows the probe: another
  /// one may have its number here.
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

}  // namespace railpass
