// SPDX-License-Identifier: BSL-1.0
//
// Quarantine: algorithms that gave a wrong result or hung, which later runs with the same MPI
// library do not use until somebody lifts the quarantine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace railpass::knowledge {

/// The record of a wrong result or a hang.
struct quarantined {
  std::string mpi_library{};       ///< first line of MPI_Get_library_version
  std::string railpass_version{};  ///< that found it
  std::string found_at{};          ///< UTC
  std::string collective{};
  std::string algorithm{};  ///< that must not be used, with whatever parameters
  std::string variant{};    ///< the arm that gave the wrong result or hung
  int num_ranks = 2;
  int ranks_per_node = 1;
  std::int64_t bytes = 0;    ///< of the message; 0 if only pairs of ranks know its length
  std::string elements{};    ///< datatype of a reduction; empty: data were moved, or unknown
  std::string difference{};  ///< one sentence: which rank had how many wrong bytes
  std::vector<std::string> hung_on{};  ///< hosts; empty: the result was wrong
  friend bool operator==(const quarantined&, const quarantined&) = default;
};

}  // namespace railpass::knowledge
