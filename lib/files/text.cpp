// SPDX-License-Identifier: BSL-1.0
//
// Whole files out.
#include "lib/base/descriptor.hpp"
#include "lib/files/files.hpp"
#include "railpass/base/error.hpp"

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace railpass::internal::files {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  const int code = errno;
  throw error(path + ": " + what + ": " + std::strerror(code));
}

// A new file beside the file that it will replace; removed unless the replacement succeeds.
class replacement {
 public:
  /// With the access rights of the file that it replaces, if there is one.
  replacement(const std::string& path, const struct ::stat* before) : path_(path) {
    // O_EXCL follows no link and shares no file, should a name ever be met twice.
    for (int attempt = 0; attempt < 100 && !file_.is_open(); ++attempt) {
      std::uint64_t random = 0;
      if (::getrandom(&random, sizeof random, 0) != sizeof random) break;
      std::array<char, 24> ending;
      std::snprintf(ending.data(), ending.size(), ".tmp%016" PRIx64, random);
      beside_ = path + ending.data();
      file_ = file_descriptor(uninterrupted(
          [&] { return ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644); }));
      if (!file_.is_open() && errno != EEXIST) break;
    }
    if (!file_.is_open()) fail(path, "cannot be created");
    if (before) ::fchmod(file_.get(), before->st_mode & 0777);  // else they are those of a new file
  }
  replacement(const replacement&) = delete;
  replacement& operator=(const replacement&) = delete;
  ~replacement() {
    if (!done_) ::unlink(beside_.c_str());
  }

  void put(std::string_view text, durability how) {
    done_ =
        write_all(file_.get(), text) &&
        (how == durability::in_time || uninterrupted([&] { return ::fsync(file_.get()); }) == 0) &&
        file_.close() && ::rename(beside_.c_str(), path_.c_str()) == 0;
    if (!done_) fail(path_, "cannot be written");
  }

 private:
  const std::string& path_;
  std::string beside_;
  file_descriptor file_;
  bool done_ = false;
};

}  // namespace

void write_text(const std::string& path, std::string_view text, durability how) {
  struct ::stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    file_descriptor file(uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); }));
    if (!file.is_open()) fail(path, "cannot be opened for writing");
    if (!write_all(file.get(), text) || !file.close()) fail(path, "cannot be written");
    return;
  }
  replacement(path, exists ? &status : nullptr).put(text, how);
}

}  // namespace railpass::internal::files
