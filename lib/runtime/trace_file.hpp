// SPDX-License-Identifier: BSL-1.0
//
// The file of RAILPASS_TRACE: a line for each call, written in large parts. The first write error
// is reported once and ends the trace.
#pragma once

#include "lib/base/descriptor.hpp"

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

namespace railpass::internal {

class trace_file {
 public:
  // Each returns a sentence for the log, once, when the file cannot be written; else an empty text.

  /// Creates the file, or empties it.
  [[nodiscard]] std::string open(const std::string& path);
  /// Adds a line. Any thread may call.
  [[nodiscard]] std::string add(std::string_view line);
  [[nodiscard]] std::string close();

  /// Whether lines are wanted: the file is open and could be written so far.
  bool is_open() const { return is_open_.load(std::memory_order_relaxed); }

 private:
  std::string give_up();
  std::string write();

  std::atomic<bool> is_open_ = false;
  std::mutex mutex_;
  file_descriptor file_;
  std::string path_, waiting_;
};

}  // namespace railpass::internal
