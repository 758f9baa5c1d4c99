// SPDX-License-Identifier: BSL-1.0
//
// How the ranks of a communicator begin to decide together: all agree, in one reduction, and take a
// lane for their messages; or there is none on any of them.
#pragma once

#include "lib/call/announced_call.hpp"
#include "lib/group/agreement.hpp"
#include "lib/group/base.hpp"
#include "lib/tuner/joint_lockstep.hpp"

#include <mpi.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace railpass {
struct settings;
}

namespace railpass::internal {

class process;

/// A rank's part in it. First make_part(), then agree(), then take_place().
class beginning {
 public:
  /// `subject`: what records call what is to be tuned over `user`. `inside`: the call in which this
  /// rank begins, if it is in one.
  beginning(MPI_Comm user, const settings& values, process& owner, std::string subject,
            std::optional<told_call> inside = {})
      : user_(user),
        values_(values),
        owner_(owner),
        subject_(std::move(subject)),
        inside_(inside) {}

  /// Why the ranks do not decide together: for good, or until they are asked again if that is
  /// `postponed`; `error_code` is that of a failed call, or of strict=on and settings that differ.
  struct refusal {
    int error_code = MPI_SUCCESS;
    bool postponed = false;
  };

  agreement agreed;

  /// All that may fail on this rank alone, and does not throw. `own_part`, a std::ref so that it
  /// needs no memory, is made where that `pays`, and may throw std::exception. `asked_for`: the
  /// program has asked for it here, so a base may be made in any.
  void make_part(bool pays, bool asked_for, const std::function<void()>& own_part);
  /// Collective.
  std::optional<refusal> agree();
  /// Connects `joint` to a lane of a base, which is made if there is none. `wants_memory`, a
  /// std::ref, says whether a slot of the memory of hosts is taken, too, and the same on all ranks;
  /// nothing fails in it. Collective.
  std::optional<refusal> take_place(
      joint_lockstep& joint, const std::function<bool(const base_place&)>& wants_memory = {});
  /// The slot that has been taken; -1: none.
  int slot() const { return slot_; }

 private:
  /// Says it, if there is memory for that: `why`, a number if there is one, and the rest.
  void refuse(std::string_view why, std::optional<int> number = {},
              std::string_view rest = {}) const;
  void offer_places();
  // On rank 0.
  void name_communicator();

  MPI_Comm user_;
  const settings& values_;
  process& owner_;
  std::string subject_;
  std::optional<told_call> inside_;
  int rank_ = 0;
  std::string waiting_;  // what a report of a hang says of the agreement
  bases& all_bases_ = bases::of_process();
  base_place place_;
  bases::materials for_base_;
  int slot_ = -1;
};

}  // namespace railpass::internal
