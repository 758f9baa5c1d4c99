// SPDX-License-Identifier: BSL-1.0
//
// What a rank does when its part of a call fails, and when it hears that another one's has.
#include "lib/session/process.hpp"
#include "lib/session/session.hpp"

#include <utility>

namespace railpass {

// What this rank did not send others wait for, in this call or in a later one: so all are told, and
// every schedule fails from now on wherever that is known. Arms that are the MPI library's own go
// on meanwhile, because ranks that know nothing yet are inside them. The next merge says to all
// ranks in the same call that nothing is tuned any more.
void session::fail() {
  if (failed_) return;
  failed_ = true;
  lane_->lose();
  lane_->tell_all(base_lane::trouble::failed);
  const std::unique_lock lock = guard();
  lockstep_.give_up();
}

// No call of this communicator is made any more that others would have to take part in.
void session::leave_others() {
  fail();
  if (std::exchange(gone_, true)) return;
  lane_->tell_all(base_lane::trouble::gone);
}

void session::keep_on() {
  // Others may wait for what this rank still has to send over rails.
  if (over_rails_ && !failed_ && over_rails_->rail.poll({}) < 0) {
    record_failure_of_rails();
    fail();
  }
  const base_lane::trouble what = lane_->look();
  if (what == base_lane::trouble::none) return;
  if (!failed_)
    process_.record("another rank has failed in a call of communicator '" + name_ +
                    "': its collectives fail until all ranks know, and are the MPI library's own "
                    "from then on");
  fail();
  gone_ = gone_ || what == base_lane::trouble::gone;
}

void session::record_failure_of_rails() {
  process_.record("the rails of communicator '" + name_ +
                  "' have failed, its collectives are the MPI library's from now on: " +
                  over_rails_->rail.failure());
}

}  // namespace railpass
