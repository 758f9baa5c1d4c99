// SPDX-License-Identifier: BSL-1.0
//
// Finds rails for the messages of a communicator: rails that are already open between all its
// ranks, or new rails.
#pragma once

#include "lib/rails/channel.hpp"
#include "lib/runtime/shared_rails.hpp"

#include <memory>
#include <string>

namespace railpass::internal {

class process;

/// A separate channel on rails for one kind of messages of a communicator, which ends separately.
/// Messages may outlive the tenancy.
struct rail_tenancy {
  std::shared_ptr<shared_rails> rails;
  std::shared_ptr<rail_channel> messages;

  explicit operator bool() const { return messages != nullptr; }

  /// For the user's messages. Collective. The tenancy is empty afterwards, even if error is thrown.
  void close(process& p);
  /// For messages of collectives, after the last call; does not involve the other ranks. Local.
  void leave(process& p);
};

/// The owner of a tenancy, and its ranks.
struct rail_tenant {
  MPI_Comm comm = MPI_COMM_NULL;  ///< on which only collectives are called
  /// For messages of collectives: where rails opened for these messages send by MPI; the rails live
  /// until MPI ends. Null: for the user's messages. Their rails get a separate communicator, and
  /// their tenancy ends by collectives on `comm`, which has no other user.
  const mpi_tags* of_collectives = nullptr;
};

/// A tenancy on rails with these names; opens the rails if no such rails are open. `budget_s`:
/// seconds for measuring the rails. Collective over the tenant's ranks; throws error on all of
/// them.
rail_tenancy tenancy_on(const rail_tenant& who, process& p, const std::string& rails,
                        const std::string& strategy, double budget_s);

/// A tenancy on the rails of the communicator's other kind of messages. If these rails have failed:
/// on other rails with the same names. Collective over the tenant's ranks; throws error on all of
/// them.
rail_tenancy tenancy_beside(const rail_tenancy& other, const rail_tenant& who, process& p,
                            double budget_s);

}  // namespace railpass::internal
