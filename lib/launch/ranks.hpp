// SPDX-License-Identifier: BSL-1.0
//
// Starts the ranks of a program and waits for their end.
#pragma once

#include "lib/launch/launcher.hpp"
#include "lib/tune/command.hpp"

#include <string>
#include <vector>

namespace railpass::internal::launch {

/// The reason of a failed launch of `railpass VERB`: the message of the verb; else the message of a
/// rank that an exception ended; else the launcher's failure.
std::string reason_in(const tune::command_result& done, const std::string& verb);

/// The lines of standard error in which railpass names settings that it does not follow.
std::vector<std::string> ignored_settings_in(const std::string& errors);

/// Runs a verb of railpass, the program's first argument, on `ranks` ranks, which get the RAILPASS
/// variables of this process. The launcher also gets `options`. A signal of tune::watch_signals()
/// ends the ranks. The result is that of tune::run_command(), with the failure of reason_in().
tune::command_result run_ranks(const starter& by, int ranks, std::vector<std::string> options,
                               const std::vector<std::string>& program, double limit_s);

enum class spread { over_hosts, on_one_host };
/// Options of the launcher that place two ranks. Empty if the launcher places them so by default.
std::vector<std::string> placing_options(launcher_kind kind, spread how);

}  // namespace railpass::internal::launch
