// SPDX-License-Identifier: BSL-1.0
//
// The speed of a communicator's rails: measured when the rails are opened, or known from before.
#pragma once

#include "lib/runtime/shared_rails.hpp"

#include <string>

namespace railpass::internal {

class process;

struct sampling_options {
  double budget_s = 0;  ///< about the time to measure each kind of link; 0: no measurement
  std::string path;     ///< file with the results; empty: only in this process
};

/// Informs the transport of the speed of its rails, equally on all ranks. Rank 0 uses earlier
/// results of this process or of the file, if they belong to the same rails. Otherwise rank 0
/// measures with a rank on its host, and with a rank on another host, while other ranks sleep; rank
/// 0 then writes the file. All pairs of ranks on one host count as equal, and so do all pairs on
/// two hosts. Rank 0's options count. Collective over `comm`, which has the transport's ranks in
/// the same order; throws error on all ranks. A file that cannot be read or written is recorded,
/// without an error.
known_rails learn_rails(open_transport& rails, MPI_Comm comm, process& p,
                        const sampling_options& options);

}  // namespace railpass::internal
