// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/own_time.hpp"

#include "lib/runtime/process.hpp"
#include "lib/tuner/tuned_contexts.hpp"

#include <algorithm>

namespace railpass::internal {

namespace {

struct timed_arm {
  double seconds = 0;
  tuned_contexts* of = nullptr;  // null: none ran in this call
};
thread_local timed_arm timed;

}  // namespace

void overhead_timing::begin() {
  of_thread.times_next_call = false;
  process* const mine = process::get();
  if (!mine) return;
  of_thread.times_this_call = true;
  timed = {};
  clock_ = mine->clock();
  const double first_s = clock_();
  began_s_ = clock_();
  reading_s_ = began_s_ - first_s;
}

void overhead_timing::arm_took(double seconds, tuned_contexts& one) { timed = {seconds, &one}; }

void overhead_timing::end() {
  const double ended_s = clock_();
  const bool was_timed = now() && timed.of;
  give_up();
  if (!was_timed) return;
  // The clock was read once before the arm and once after it for this alone.
  timed.of->add_own_time(std::max(0.0, ended_s - began_s_ - timed.seconds - 2 * reading_s_));
}

}  // namespace railpass::internal
