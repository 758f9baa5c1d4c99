// SPDX-License-Identifier: BSL-1.0
//
// Where the messages of a communicator find rails: on some that are open between all its ranks
// already, or on new ones.
#pragma once

#include "lib/rails/communicator/shared_rails.hpp"
#include "lib/rails/lane.hpp"

#include <memory>
#include <string>

namespace railpass::internal {

class process;

/// What one kind of messages of a communicator has: a lane of its own, which ends by itself.
/// Messages may outlive it.
struct rail_place {
  std::shared_ptr<shared_rails> rails;
  std::shared_ptr<lane> messages;

  explicit operator bool() const { return messages != nullptr; }

  /// Collective, of the user's messages. There is none afterwards, even if error is thrown.
  void close(process& p);
  /// Of those of collectives, once there are no calls any more: without the others. Local.
  void leave(process& p);
};

/// Whose place it is, on whose ranks.
struct rail_tenant {
  MPI_Comm comm = MPI_COMM_NULL;  ///< on which only collectives are called
  /// Of collectives: where rails that are opened for them send by MPI, and the rails live until MPI
  /// ends. None: of the user's messages, whose rails get a communicator of their own, and whose
  /// place ends by collectives on `comm`, which is nobody else's.
  const mpi_place* of_collectives = nullptr;
};

/// A place on rails of these names, which are opened if none are; `budget_s` is to measure them.
/// Collective over the tenant's ranks; throws error on all of them alike.
rail_place place_on(const rail_tenant& who, process& p, const std::string& rails,
                    const std::string& strategy, double budget_s);

/// A place on the rails that messages of the other kind have already, or, if these have failed, on
/// others of their names. Collective over the tenant's ranks; throws error on all of them alike.
rail_place place_beside(const rail_place& other, const rail_tenant& who, process& p,
                        double budget_s);

}  // namespace railpass::internal
