// SPDX-License-Identifier: BSL-1.0
//
// Starts the ranks of a program and waits for their end.
#pragma once

#include "lib/launch/launcher.hpp"
#include "lib/tune/command.hpp"

#include <string>
#include <vector>

namespace railpass::internal::launch {

/// Why ranks of `railpass VERB` failed: their message, not the launcher's lines or what railpass
/// says before; without one, the failure.
std::string reason_in(const tune::command_result& done, const std::string& verb);

/// Runs a verb of railpass, the program's first argument, on `ranks` ranks, which get this process'
/// RAILPASS variables. `options`: more of the launcher. A failure is that of reason_in().
/// Otherwise as tune::run_command(); the signals are those of tune::watch_signals().
tune::command_result run_ranks(const starter& by, int ranks, std::vector<std::string> options,
                               const std::vector<std::string>& program, double limit_s);

enum class spread { over_hosts, on_one_host };
/// Options of the launcher that place two ranks. Empty if the launcher places them so by default.
std::vector<std::string> placing_options(launcher_kind kind, spread how);

}  // namespace railpass::internal::launch
