// SPDX-License-Identifier: BSL-1.0
#include "lib/files/input.hpp"

#include "railpass/base/clock.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace railpass::internal::files {

namespace {

constexpr double longest_reading_s = 60;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  const int code = errno;
  throw error(path + ": " + what + ": " + std::strerror(code));
}

[[noreturn]] void fail_as_too_long(const std::string& path, std::uint64_t most_bytes) {
  throw refused_error(path + ": cannot be read: expected at most " +
                      std::to_string(most_bytes >> 20) + " MiB");
}

const char* kind_of(::mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : "a device or a socket";
}

}  // namespace

file_descriptor open_input(const std::string& path, std::uint64_t most_bytes) {
  file_descriptor file(uninterrupted(
      [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  struct ::stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0)
    fail(path, "cannot be opened for reading");
  if (!S_ISREG(status.st_mode))
    throw refused_error(path + ": cannot be read: expected a regular file, found " +
                        kind_of(status.st_mode));
  if (std::uint64_t(status.st_size) > most_bytes) fail_as_too_long(path, most_bytes);
  return file;
}

std::string read_text(const std::string& path, std::uint64_t most_bytes) {
  const file_descriptor file = open_input(path, most_bytes);
  const double until_s = steady_clock_s() + longest_reading_s;
  std::string text;
  std::array<char, 1 << 16> part;
  for (;;) {
    const ::ssize_t n = uninterrupted([&] { return ::read(file.get(), part.data(), part.size()); });
    if (n < 0) fail(path, "cannot be read");
    if (n == 0) return text;
    text.append(part.data(), std::size_t(n));
    if (text.size() > most_bytes) fail_as_too_long(path, most_bytes);  // it grows
    if (steady_clock_s() > until_s)
      throw error(path + ": cannot be read: reading took more than a minute");
  }
}

}  // namespace railpass::internal::files
