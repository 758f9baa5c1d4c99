// SPDX-License-Identifier: BSL-1.0
//
// The engines of this installation. An engine is what railpass has for one MPI library: librailpass
// with the preload library, and the programs that call MPI. Nothing here is linked with MPI.
#pragma once

#include "lib/launch/launcher.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace railpass::internal::launch {

/// The path of the running program, without symbolic links.
std::filesystem::path this_program();

/// The preload library for that family: beside the librailpass of the build, or in its folder
/// railpass/<name>; for Intel MPI MPICH's, if Intel MPI has none. Throws error that says how to get
/// it.
std::string preload_library(mpi_family family);
/// The path of a program that calls MPI: "railpass-mpi", "first". There may be none. Sees to it
/// that the program finds its MPI library if this process starts it.
std::string program_of(mpi_family family, const std::string& name);

/// The families with an engine; the family of the build is the first one.
std::vector<mpi_family> installed_engines();

/// The engine for the job that this process is a rank of. Outside a job: the first engine whose MPI
/// library can be loaded, among those whose ranks `launcher` can start. Throws error that says for
/// each engine why it cannot be loaded.
/// @param launcher a command whose first word starts ranks; empty: any launcher
mpi_family engine_of_this_job(const std::string& launcher = {});

struct mpi_marks {
  std::string built_for;  ///< the MPI library that the engine was built for
  std::string library;    ///< what MPI_Get_library_version says
};
/// Loads the engine and its MPI library. Throws error if this is impossible.
mpi_marks marks_of(mpi_family family);

}  // namespace railpass::internal::launch
