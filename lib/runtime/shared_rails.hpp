// SPDX-License-Identifier: BSL-1.0
//
// Rails that are open, which communicators may share: what is known of them, and what they carried.
#pragma once

#include "lib/rails/open_transport.hpp"
#include "railpass/select/statistics/dump.hpp"
#include "railpass/transport/sampling.hpp"

#include <string>
#include <vector>

namespace railpass::internal {

/// Knowledge about the rails between two kinds of ranks.
struct known_link {
  transport::measured_link measured;
  transport::link_findings findings;
};

struct known_rails {
  std::string source;             ///< a sentence: measured now, or the source
  std::string measured_at;        ///< UTC
  std::vector<known_link> links;  ///< empty: not measured; first messages give estimates
};

struct shared_rails {
  open_transport transport;
  known_rails known;

  shared_rails(MPI_Comm comm, const mpi_tags& over, const std::string& rails,
               const std::string& strategy, double silence_s)
      : transport(comm, over, rails, strategy, silence_s) {}
};

/// This rank's traffic over each of the rails.
std::vector<select::rail_statistics> statistics_of(open_transport& rails);

}  // namespace railpass::internal
