// SPDX-License-Identifier: BSL-1.0
//
// How quick the rails of a communicator are: measured when they are opened, or known from before.
#pragma once

#include "lib/rails/open_transport.hpp"
#include "railpass/transport/sampling.hpp"

#include <string>
#include <vector>

namespace railpass::internal {

class process;

/// What is known of the rails between two kinds of ranks.
struct known_link {
  transport::measured_link measured;
  transport::link_findings findings;
};

struct known_rails {
  std::string source;             ///< a sentence: measured now, or where it is from
  std::string measured_at;        ///< UTC
  std::vector<known_link> links;  ///< none: nothing was measured, the first messages tell
};

struct sampling_options {
  double budget_s = 0;  ///< to measure each kind of link, about; 0: not at all
  std::string path;     ///< of the file that keeps it; empty: only this process remembers
};

/// Tells the transport how quick its rails are, on all ranks the same. What rank 0 has measured in
/// this process before, or finds in the file, is taken if it is of the same rails; else rank 0 and
/// one rank on its host, and rank 0 and one rank on another host, measure while all others sleep,
/// and rank 0 writes the file. All pairs of ranks on one host are taken as alike, and so are all on
/// two hosts. Options are rank 0's. Collective over `comm`, which has the transport's ranks in the
/// same order; throws error on all ranks alike. A file that cannot be used or written is recorded,
/// and no error.
known_rails learn_rails(open_transport& rails, MPI_Comm comm, process& p,
                        const sampling_options& options);

}  // namespace railpass::internal
