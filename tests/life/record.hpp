// SPDX-License-Identifier: BSL-1.0
//
// The record of a rank's actions, in a file that is mapped into memory, so that it can be read
// however the rank ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace life {

constexpr int max_threads = 3;

/// The layout of the file; lives.py reads it.
struct record {
  std::atomic<std::int64_t> pid, rank, lives, calls, differences, ended;
  char doing[max_threads][256];  ///< the latest action of each thread
  char said[4096];               ///< the first differences, one line each
};

/// The record of this process. Before open_record() a record that is never read.
record& own_record();

/// Throws std::runtime_error if the file cannot be made.
void open_record(const std::string& file_name);

/// Notes the action that the thread starts; longer text is cut.
void doing(int thread, const std::string& text);

/// Counts a difference between MPI's promise and the result, and keeps the text.
void differs(int thread, const std::string& what);

}  // namespace life
