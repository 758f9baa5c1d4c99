// SPDX-License-Identifier: BSL-1.0
//
// The program `railpass` is linked with no MPI library. Its helper `railpass-mpi` is the whole
// program, linked with one, and stands beside each engine.
#pragma once

namespace railpass::internal::cli {

/// Starts the helper with this process' command line in the place of this process. Throws error if
/// there is none for an MPI library of this machine.
[[noreturn]] void become_helper();

}  // namespace railpass::internal::cli
