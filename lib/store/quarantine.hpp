// SPDX-License-Identifier: BSL-1.0
//
// Quarantine as files: one for each algorithm and MPI library, in the folder `quarantine` of a
// store. A file appears complete and never changes, so nothing needs locks. Nothing here is
// collective.
#pragma once

#include "lib/store/store.hpp"
#include "railpass/knowledge/quarantine.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace railpass::internal::store {

/// A record and its file.
struct quarantine_file {
  knowledge::quarantined record{};
  std::filesystem::path path{};
  bool counts = true;  ///< only files of the site quarantine the MPI library's own collectives
};

struct quarantine_contents {
  std::vector<quarantine_file> files;  ///< in the order of their paths
  std::vector<std::string> problems;   ///< a sentence for each skipped file
};

/// All records for the MPI library, or for each MPI library if `mpi_library` is empty. Never throws
/// for problems of files.
quarantine_contents quarantine(const locations& from, const std::string& mpi_library);

/// Adds a record, unless the algorithm has a record for the MPI library. Does not wait for the
/// disk. Throws error (disk full, read-only).
void add(const std::filesystem::path& own, const knowledge::quarantined& q);

/// Removes the record of an algorithm. Throws error if the file cannot be removed.
void lift(const std::filesystem::path& file);
/// Removes the record that add() has made, if it is still there. Throws error.
void withdraw(const std::filesystem::path& own, const knowledge::quarantined& q);

}  // namespace railpass::internal::store
