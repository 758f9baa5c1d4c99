// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/rails/lane.hpp"
#include "lib/session/rail_sampling.hpp"
#include "railpass/select/dump.hpp"

#include <memory>
#include <string>
#include <vector>

namespace railpass {

class process;

/// Rails that are open, which communicators may share, and what is known of them.
struct shared_rails {
  open_transport transport;
  known_rails known;

  shared_rails(MPI_Comm comm, const std::string& rails, const std::string& strategy,
               double silence_s)
      : transport(comm, rails, strategy, silence_s) {}
};

/// The lane of collectives of `comm`: over the rails that open_rails has opened there, or else
/// those named. It ends with `comm`. Collective; throws error on all ranks alike.
std::shared_ptr<lane> rails_for_collectives(MPI_Comm comm, process& p, const std::string& rails,
                                            const std::string& strategy);

/// What this rank has sent over each of the rails.
std::vector<select::rail_statistics> statistics_of(open_transport& rails);

/// What is known of the open rails of `comm`, the same on all ranks. Throws error if it has none.
const known_rails& known_rails_of(MPI_Comm comm);

/// The keyval under which a communicator has its rails; see railpass/rails.hpp. Returns an MPI
/// error code.
int create_rails_key(int* key);

}  // namespace railpass
