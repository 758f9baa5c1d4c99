// SPDX-License-Identifier: BSL-1.0
//
// A file's descriptor, and calls of the system that a signal may cut short or that raise a signal.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace railpass::internal {

/// The call again as long as a signal interrupts it. Not for close(), which always closes.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Owns a descriptor; -1: none.
class file_descriptor {
 public:
  file_descriptor() = default;
  explicit file_descriptor(int value) : value_(value) {}
  file_descriptor(file_descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~file_descriptor() { close(); }

  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  /// Gives the ownership to the caller.
  int release() { return std::exchange(value_, -1); }
  /// Returns whether all data was written, as far as the system reports this here.
  bool close() { return value_ < 0 || ::close(release()) == 0 || errno == EINTR; }

 private:
  int value_ = -1;
};

/// Whether a file of so many bytes would be longer than `ulimit -f` allows. Writing it would raise
/// SIGXFSZ, which ends programs.
inline bool exceeds_file_size(std::uint64_t bytes) {
  rlimit most{};
  return ::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes;
}

/// Writes the whole text, at the end if it is a regular file, in several parts if necessary. False:
/// see errno; no signal.
inline bool write_all(int descriptor, std::string_view text) {
  struct ::stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
      exceeds_file_size(std::uint64_t(status.st_size) + text.size())) {
    errno = EFBIG;
    return false;
  }
  while (!text.empty()) {
    const ::ssize_t n =
        uninterrupted([&] { return ::write(descriptor, text.data(), text.size()); });
    if (n < 0) return false;
    text.remove_prefix(std::size_t(n));
  }
  return true;
}

}  // namespace railpass::internal
