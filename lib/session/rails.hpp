// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/rails/open_transport.hpp"

#include <memory>
#include <string>

namespace railpass {

class process;

/// The rails that collectives of `comm` run over: those that open_rails has opened there, or else
/// those named, opened now. They end with `comm`. Collective; throws error on all ranks alike.
std::shared_ptr<open_transport> rails_for_collectives(MPI_Comm comm, process& p,
                                                      const std::string& rails,
                                                      const std::string& strategy);

/// The keyval under which a communicator has its rails; see railpass/rails.hpp. Returns an MPI
/// error code.
int create_rails_key(int* key);

}  // namespace railpass
