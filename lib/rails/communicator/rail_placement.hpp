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

/// The place of one kind of messages of a communicator: a separate channel, which ends separately.
/// Messages may outlive the place.
struct rail_place {
  std::shared_ptr<shared_rails> rails;
  std::shared_ptr<rail_channel> messages;

  explicit operator bool() const { return messages != nullptr; }

  /// For the user's messages. Collective. The place is empty afterwards, even if error is thrown.
  void close(process& p);
  /// For messages of collectives, after the last call; does not involve the other ranks. Local.
  void leave(process& p);
};

/// The owner of a place, and its ranks.
struct rail_tenant {
  MPI_Comm comm = MPI_COMM_NULL;  ///< on which only collectives are called
  /// For messages of collectives: where rails opened for these messages send by MPI; the rails live
  /// until MPI ends. Null: for the user's messages. Their rails get a separate communicator, and
  /// their place ends by collectives on `comm`, which has no other user.
  const mpi_place* of_collectives = nullptr;
};

/// A place on rails with these names; opens the rails if no such rails are open. `budget_s`:
/// seconds for measuring the rails. Collective over the tenant's ranks; throws error on all of
/// them.
rail_place place_on(const rail_tenant& who, process& p, const std::string& rails,
                    const std::string& strategy, double budget_s);

/// A place on the rails of the communicator's other kind of messages. If these rails have failed:
/// on other rails with the same names. Collective over the tenant's ranks; throws error on all of
/// them.
rail_place place_beside(const rail_place& other, const rail_tenant& who, process& p,
                        double budget_s);

}  // namespace railpass::internal
