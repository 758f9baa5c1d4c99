// SPDX-License-Identifier: BSL-1.0
//
// Where the messages of a communicator find rails: on some that are open between all its ranks
// already, or on new ones.
#pragma once

#include "lib/rails/lane.hpp"
#include "lib/session/private_communicator.hpp"
#include "lib/session/shared_rails.hpp"

#include <memory>
#include <string>

namespace railpass {

class process;

/// What one kind of messages of a communicator has: a lane of its own, which ends by itself.
/// Messages may outlive it.
struct rail_place {
  std::shared_ptr<shared_rails> rails;
  std::shared_ptr<lane> messages;

  explicit operator bool() const { return messages != nullptr; }

  /// Collective. There is none afterwards, even if error is thrown.
  void close(process& p);
};

/// A place on rails of these names, which are opened if none are; `budget_s` is to measure them.
/// Collective over `comm`; throws error on all ranks alike.
rail_place place_on(const private_communicator& comm, process& p, const std::string& rails,
                    const std::string& strategy, double budget_s);

/// A place on the rails that messages of the other kind have already, or, if these have failed, on
/// others of their names. Collective over `comm`; throws error on all ranks alike.
rail_place place_beside(const rail_place& other, const private_communicator& comm, process& p,
                        double budget_s);

}  // namespace railpass
