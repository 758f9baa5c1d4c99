// SPDX-License-Identifier: BSL-1.0
//
// Whole files in and out, and the marks of this machine.
#include "lib/files/files.hpp"
#include "railpass/base/error.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace railpass::files {

namespace {

constexpr std::size_t largest_file_bytes = std::size_t{256} << 20;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  const int code = errno;
  throw error(path + ": " + what + ": " + std::strerror(code));
}

class file_descriptor {
 public:
  explicit file_descriptor(int value) : value_(value) {}
  file_descriptor(const file_descriptor&) = delete;
  file_descriptor& operator=(const file_descriptor&) = delete;
  ~file_descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  bool close() { return ::close(std::exchange(value_, -1)) == 0; }

 private:
  int value_;
};

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ::ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(std::size_t(n));
  }
  return true;
}

}  // namespace

void write_text(const std::string& path, std::string_view text) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    file_descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) fail(path, "cannot be opened for writing");
    if (!write_all(file.get(), text)) fail(path, "cannot be written");
    return;
  }
  const std::string beside = path + ".tmp" + std::to_string(::getpid());
  file_descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) fail(path, "cannot be created");
  if (!write_all(file.get(), text) || ::fsync(file.get()) != 0 || !file.close() ||
      ::rename(beside.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(beside.c_str());
    errno = code;
    fail(path, "cannot be written");
  }
}

std::string read_text(const std::string& path) {
  file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot be opened for reading");
  std::string text;
  std::array<char, 1 << 16> part;
  for (;;) {
    const ::ssize_t n = ::read(file.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "cannot be read");
    if (n == 0) return text;
    text.append(part.data(), std::size_t(n));
    if (text.size() > largest_file_bytes)
      throw error(path + ": longer than 256 MiB, which no file of railpass is");
  }
}

fingerprint this_machine(int num_hosts, std::string_view mpi_library) {
  fingerprint here{.num_hosts = num_hosts,
                   .cores_per_host = int(std::thread::hardware_concurrency()),
                   .cpu_model = {},
                   .mpi_library = std::string(mpi_library.substr(0, mpi_library.find('\n')))};
  // MPICH says the length of the string, with its final zero byte.
  while (!here.mpi_library.empty() &&
         (here.mpi_library.back() == '\0' ||
          std::isspace(static_cast<unsigned char>(here.mpi_library.back()))))
    here.mpi_library.pop_back();
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);)
    if (line.starts_with("model name")) {
      const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
      if (value != std::string::npos) here.cpu_model = line.substr(value);
      break;
    }
  return here;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text;
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace railpass::files
