// SPDX-License-Identifier: BSL-1.0
//
// What a rank has done, in a file that is mapped into memory: it can be read however the rank ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace life {

constexpr int max_threads = 3;

/// The layout of the file; lives.py reads it.
struct record {
  std::atomic<std::int64_t> pid, rank, lives, calls, differences, ended;
  char doing[max_threads][256];  ///< what each thread has begun last
  char said[4096];               ///< the first differences, one line each
};

/// The record of this process. Before open_record() one that nobody sees.
record& own_record();

/// Throws std::runtime_error if the file cannot be made.
void open_record(const std::string& file_name);

/// Says what the thread begins; longer text is cut.
void doing(int thread, const std::string& text);

/// Counts a difference between what MPI promises and what came, and keeps the sentence.
void differs(int thread, const std::string& what);

}  // namespace life
