// SPDX-License-Identifier: BSL-1.0
//
// Set-up of joint tuning: the ranks of a communicator agree in one reduction and take a lane for
// their messages, or no rank does.
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

/// A rank's part in the set-up. Call make_part(), agree() and take_resources() in this order.
class set_up {
 public:
  /// `subject`: name in records of what is tuned over `user`. `inside`: the call in which this rank
  /// starts, if any.
  set_up(MPI_Comm user, const settings& values, process& owner, std::string subject,
         std::optional<told_call> inside = {})
      : user_(user),
        values_(values),
        owner_(owner),
        subject_(std::move(subject)),
        inside_(inside) {}

  /// Why the ranks do not tune together: permanently or, if `postponed`, until the next request.
  /// `error_code`: of a failed call, or of strict=on with settings that differ.
  struct refusal {
    int error_code = MPI_SUCCESS;
    bool postponed = false;
  };

  agreement agreed;

  /// Makes everything that may fail on this rank alone; does not throw. `own_part` runs if tuning
  /// `pays`, and may throw std::exception; pass a std::ref, which needs no memory. `asked_for`: the
  /// program requests tuning here, so any program may get a new base.
  void make_part(bool pays, bool asked_for, const std::function<void()>& own_part);
  /// Collective.
  std::optional<refusal> agree();
  /// Connects `joint` to a lane of a base; makes a base if there is none. `wants_memory`: whether
  /// to take a slot of host memory, too; equal on all ranks, and must not fail; pass a std::ref.
  /// Collective.
  std::optional<refusal> take_resources(
      joint_lockstep& joint, const std::function<bool(const base_mapping&)>& wants_memory = {});
  /// The slot that has been taken, or -1.
  int slot() const { return slot_; }

 private:
  /// Records the refusal, if memory suffices: `why`, an optional number, and the rest.
  void refuse(std::string_view why, std::optional<int> number = {},
              std::string_view rest = {}) const;
  void offer_resources();
  // Call on rank 0.
  void name_communicator();

  MPI_Comm user_;
  const settings& values_;
  process& owner_;
  std::string subject_;
  std::optional<told_call> inside_;
  int rank_ = 0;
  std::string waiting_;  // text of a hang report about the agreement
  bases& all_bases_ = bases::of_process();
  base_mapping mapping_;
  bases::materials for_base_;
  int slot_ = -1;
};

}  // namespace railpass::internal
