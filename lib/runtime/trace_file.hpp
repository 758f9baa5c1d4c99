// SPDX-License-Identifier: BSL-1.0
//
// The file of RAILPASS_TRACE: a line for each call, written in large parts, but at once where a
// second has passed, because the program may be killed. The first write error is reported once and
// ends the trace.
#pragma once

#include "lib/base/descriptor.hpp"

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>

namespace railpass::internal {

/// A call that was made, with the columns of files::trace_header.
struct trace_line {
  double started_s = 0;
  std::string communicator{};
  std::int64_t call = 0;  ///< its number
  std::string_view operation{};
  std::int64_t bytes = 0;
  std::string arm{};
  double probability = 1;
  bool timed = false;
  double seconds = 0;

  std::string text() const;
};

class trace_file {
 public:
  // Each returns a sentence for the log, once, when the file cannot be written; else an empty text.

  /// Creates the file, or empties it.
  [[nodiscard]] std::string open(const std::string& path);
  /// Adds a line at the time `now_s`, by any clock. Any thread may call.
  [[nodiscard]] std::string add(std::string_view line, double now_s);
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
  double written_at_s_ = -std::numeric_limits<double>::infinity();
};

}  // namespace railpass::internal
