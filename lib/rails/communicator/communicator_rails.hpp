// SPDX-License-Identifier: BSL-1.0
//
// What a communicator of the user keeps of rails, as its attribute: made by the first call that
// gives it a place on some, gone with the communicator or with its last place. The user's place
// ends with the other ranks, that of collectives without them.
#pragma once

#include "lib/group/private_communicator.hpp"
#include "lib/rails/communicator/rail_placement.hpp"

#include <functional>
#include <memory>
#include <string>

namespace railpass::internal {

class process;

struct communicator_rails {
  private_communicator comm;  // of_user's
  rail_place of_user;         // open_rails was called
  rail_place of_collectives;
};

/// Null if there are none.
communicator_rails* find_rails(MPI_Comm comm, const process& p);

/// For a public call, which the errors name that are thrown outside of MPI_Init and MPI_Finalize
/// and, of rails, where open_rails was not called.
process& required_process(const char* call);
communicator_rails& required_rails(const char* call, MPI_Comm comm);

/// Gives `comm` the user's place, which it has not got and `work` finds on a communicator of its
/// own. Collective; throws error on all ranks alike.
void give_place(MPI_Comm comm, process& p,
                const std::function<rail_place(const communicator_rails& mine)>& work);
/// Takes it away. Collective; throws error on all ranks alike, and has done so even then.
void take_place(MPI_Comm comm, process& p);

/// The lane of collectives of `comm`: over the rails that open_rails has opened there, or else
/// those named; if these have to be opened, what they send by MPI goes `over` its place. It ends
/// with `comm`. Makes no communicator. Collective; throws error on all ranks alike.
std::shared_ptr<lane> rails_for_collectives(MPI_Comm comm, process& p, const mpi_place& over,
                                            const std::string& rails, const std::string& strategy);

/// What is known of the open rails of `comm`, the same on all ranks. Throws error if it has none.
const known_rails& known_rails_of(MPI_Comm comm);

/// The keyval under which a communicator has its rails; see railpass/rails.hpp. Returns an MPI
/// error code.
int create_rails_key(int* key);

}  // namespace railpass::internal
