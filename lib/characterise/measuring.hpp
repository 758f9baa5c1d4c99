// SPDX-License-Identifier: BSL-1.0
//
// Starts the launches of a characterisation.
#pragma once

#include "lib/characterise/folder.hpp"
#include "lib/characterise/schedule.hpp"

#include <functional>
#include <string>

namespace railpass::internal::characterise {

/// Gets the share of the budget that is spent, and what goes on.
using progress_report = std::function<void(double fraction, const std::string& doing)>;

/// Samples the machine unless the folder has samples, and makes launches as next_launch() wants
/// until the time is over or tune::watch_signals() reports a signal. The folder gets each result at
/// once. A launch whose output cannot be read, or that had another number of ranks or another
/// placement than the launches of this call before, counts as failed. `launcher`: as bench
/// --launcher. Throws error if the machine cannot be sampled, if all launches failed, or if the
/// folder was made on another machine or with another placement.
void measure_machine(const folder& to, const question& q, const std::string& launcher,
                     const progress_report& progress);

/// The samples in the folder: of two ranks on one host and, with several hosts, of two hosts.
std::vector<std::string> sample_files(const folder& from);

}  // namespace railpass::internal::characterise
