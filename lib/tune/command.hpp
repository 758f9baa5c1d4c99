// SPDX-License-Identifier: BSL-1.0
//
// Runs a command to its end, to the end of its time or to our own, and leaves nothing of it behind.
#pragma once

#include "railpass/base/error.hpp"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal::tune {

struct command_request {
  std::string line;                                              ///< for /bin/sh
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to this process' own
  double limit_s = 200;
  std::string folder = {};  ///< removed if this process is killed while the command runs
  std::size_t kept_bytes = std::size_t{8} << 20;  ///< of standard output, and of standard error
};

struct command_result {
  std::string failure;  ///< a sentence: timed out, ended by a signal or with a status that is not 0
  std::string output;   ///< standard output; the first and the last half of what is kept
  std::string errors;   ///< standard error, likewise
  bool output_is_cut = false;     ///< there was more output than is kept
  std::uint64_t output_hash = 0;  ///< fnv1a of all output, kept or not
  double wall_s = 0;
  std::int64_t peak_memory_bytes = 0;  ///< resident, of the largest process it waited for
};

/// Thrown where the signal flag was raised; nothing of the command is left running.
class interrupted : public error {
 public:
  using error::error;
};

/// From the first call on SIGINT, SIGTERM and SIGHUP do not end this process; the result becomes
/// the number of the last one that came, 0 before.
const volatile std::sig_atomic_t* watch_signals();

/// Runs the command in a session of its own with no standard input. Whatever it started is ended
/// with it, also what made itself a session of its own, and also if this process is killed: a
/// process in between is the parent of orphans (PR_SET_CHILD_SUBREAPER) and notices our end. Throws
/// error if nothing can be started, and interrupted soon after *stop becomes nonzero. To be called
/// while this process has one thread.
command_result run_command(const command_request& request, const volatile std::sig_atomic_t* stop);

}  // namespace railpass::internal::tune
