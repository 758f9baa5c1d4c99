// SPDX-License-Identifier: BSL-1.0
//
// How this process was started: its words, and the job of a launcher.
#pragma once

#include <string>
#include <vector>

namespace railpass::internal::cli {

/// The words with which this process was started. In the helper the first word is the path of the
/// program `railpass`.
std::vector<std::string> own_words();

/// Whether mpirun or its like started this process.
bool under_launcher();

/// Whether it started this process as a rank. Slurm's batch scripts have a number as ranks have,
/// too, and are none.
bool is_rank();

/// Whether this process is to print: alone, or rank 0 of the job.
bool speaks_for_the_job();

/// For the ranks that do not speak, before they end with a status that is not 0: mpirun ends the
/// job at the first one, and rank 0 must have spoken by then.
void let_rank_0_speak();

}  // namespace railpass::internal::cli
