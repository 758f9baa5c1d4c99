// SPDX-License-Identifier: BSL-1.0
//
// A user communicator's rails, kept as its attribute. Made by the first call that gives it a
// tenancy on rails; gone with the communicator or with its last tenancy. The user's tenancy ends
// collectively; the tenancy of collectives ends on each rank separately.
#pragma once

#include "lib/group/private_communicator.hpp"
#include "lib/rails/communicator/rail_tenancy.hpp"

#include <functional>
#include <memory>
#include <string>

namespace railpass::internal {

class process;

struct communicator_rails {
  private_communicator comm;  // of the user's tenancy
  rail_tenancy of_user;       // open_rails was called
  rail_tenancy of_collectives;
};

/// Null if the communicator has no rails. MPI must be running.
communicator_rails* find_rails(MPI_Comm comm);

/// For the public call `call`, which the errors name. Throw error outside MPI_Init and
/// MPI_Finalize, and (required_rails) if open_rails was not called.
process& required_process(const char* call);
communicator_rails& required_rails(const char* call, MPI_Comm comm);

/// Gives `comm` the user's tenancy, which `work` finds on a separate communicator. `comm` must have
/// no such tenancy yet. Collective; throws error on all ranks.
void give_tenancy(MPI_Comm comm,
                  const std::function<rail_tenancy(const communicator_rails& mine)>& work);
/// Takes the user's tenancy away, even if this throws. Collective; throws error on all ranks.
void end_tenancy(MPI_Comm comm, process& p);

/// The channel of collectives of `comm`: over the rails that open_rails has opened, or else over
/// the named rails. If these must be opened, their MPI messages use the tags `over`. The channel
/// ends with `comm`. Makes no communicator. Collective; throws error on all ranks.
std::shared_ptr<rail_channel> rails_for_collectives(MPI_Comm comm, process& p, const mpi_tags& over,
                                                    const std::string& rails,
                                                    const std::string& strategy);

/// Knowledge about the open rails of `comm`, equal on all ranks. Throws error without rails.
const known_rails& known_rails_of(MPI_Comm comm);

}  // namespace railpass::internal
