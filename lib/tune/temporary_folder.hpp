// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/error.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace railpass::internal::tune {

/// A folder of this user alone, so that nobody puts a link where a launch writes. Removed with what
/// is in it.
class temporary_folder {
 public:
  temporary_folder() {
    path_ = (std::filesystem::temp_directory_path() / "railpass-XXXXXX").string();
    if (!::mkdtemp(path_.data()))
      throw error(path_ + ": no folder for what launches write: " + std::strerror(errno));
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

}  // namespace railpass::internal::tune
