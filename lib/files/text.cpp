// SPDX-License-Identifier: BSL-1.0
//
// Whole files out.
#include "lib/base/descriptor.hpp"
#include "lib/files/files.hpp"
#include "railpass/base/error.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/random.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace railpass::internal::files {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  const int code = errno;
  throw error(path + ": " + what + ": " + std::strerror(code));
}

// A new file beside the file that it will replace; removed unless the replacement succeeds.
class replacement {
 public:
  /// With the access rights of the file that it replaces, if there is one. Errors name `path`.
  replacement(const std::string& path, std::string file, const struct ::stat* before)
      : path_(path), file_name_(std::move(file)) {
    // O_EXCL follows no link and shares no file, should a name ever be met twice.
    for (int attempt = 0; attempt < 100 && !file_.is_open(); ++attempt) {
      std::uint64_t random = 0;
      if (::getrandom(&random, sizeof random, 0) != sizeof random) break;
      std::array<char, 24> ending;
      std::snprintf(ending.data(), ending.size(), ".tmp%016" PRIx64, random);
      beside_ = file_name_ + ending.data();
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
        file_.close() && ::rename(beside_.c_str(), file_name_.c_str()) == 0;
    if (!done_) fail(path_, "cannot be written");
  }

 private:
  const std::string& path_;
  std::string file_name_, beside_;
  file_descriptor file_;
  bool done_ = false;
};

// The file behind a path's links, or a descriptor of this process, such as standard output behind
// /dev/stdout. Other writers hold the file of a descriptor open, so the file must not be replaced.
struct destination {
  std::filesystem::path file;
  file_descriptor descriptor{};
};

destination destination_of(const std::string& path) {
  constexpr int most_links = 40;  // as the system follows
  // In /tmp and the like, another user may have made the link.
  constexpr auto for_all =
      std::filesystem::perms::sticky_bit | std::filesystem::perms::others_write;
  std::error_code none;
  const std::filesystem::path own = std::filesystem::canonical("/proc/self/fd", none);
  destination result{path};
  for (int n = 0; n < most_links && std::filesystem::is_symlink(result.file, none); ++n) {
    const std::filesystem::path folder = std::filesystem::canonical(
        result.file.has_parent_path() ? result.file.parent_path() : ".", none);
    if ((std::filesystem::status(folder, none).permissions() & for_all) == for_all) break;
    const std::string name = result.file.filename();
    int number = -1;
    if (!own.empty() && folder == own &&
        std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc{}) {
      result.descriptor = file_descriptor(::fcntl(number, F_DUPFD_CLOEXEC, 0));
      if (!result.descriptor.is_open()) fail(path, "cannot be opened for writing");
      break;
    }
    result.file = folder / std::filesystem::read_symlink(result.file, none);
  }
  return result;
}

}  // namespace

void write_text(const std::string& path, std::string_view text, durability how) {
  destination to = destination_of(path);
  struct ::stat status {};
  const bool exists = ::stat(to.file.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode) && !to.descriptor.is_open()) {
    to.descriptor = file_descriptor(
        uninterrupted([&] { return ::open(to.file.c_str(), O_WRONLY | O_CLOEXEC); }));
    if (!to.descriptor.is_open()) fail(path, "cannot be opened for writing");
  }
  if (!to.descriptor.is_open())
    replacement(path, to.file, exists ? &status : nullptr).put(text, how);
  else if (!write_all(to.descriptor.get(), text) || !to.descriptor.close())
    fail(path, "cannot be written");
}

bool may_be_written(const std::string& path) {
  try {
    const destination to = destination_of(path);
    if (to.descriptor.is_open()) return true;
    std::error_code none;
    const std::filesystem::file_status there = std::filesystem::status(to.file, none);
    if (is_directory(there)) return false;
    const bool is_replaced = is_regular_file(there) || !exists(there);
    const std::filesystem::path folder = to.file.has_parent_path() ? to.file.parent_path() : ".";
    return ::access((is_replaced ? folder : to.file).c_str(), W_OK) == 0;
  } catch (const error&) {
    return false;
  }
}

}  // namespace railpass::internal::files
