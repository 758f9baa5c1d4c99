// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/own_time.hpp"

#include "lib/runtime/process.hpp"
#include "lib/tuner/tuned_contexts.hpp"

#include <algorithm>

namespace railpass::internal {

namespace {

struct weighed_arm {
  double seconds = 0;
  tuned_contexts* of = nullptr;  // null: none ran in this call
};
thread_local weighed_arm weighed;

}  // namespace

void weighing::begin() {
  of_thread.weighs_next_call = false;
  process* const mine = process::get();
  if (!mine) return;
  of_thread.weighs_this_call = true;
  weighed = {};
  clock_ = mine->clock();
  const double first_s = clock_();
  began_s_ = clock_();
  reading_s_ = began_s_ - first_s;
}

void weighing::arm_took(double seconds, tuned_contexts& one) { weighed = {seconds, &one}; }

void weighing::end() {
  const double ended_s = clock_();
  const bool was_weighed = now() && weighed.of;
  give_up();
  if (!was_weighed) return;
  // The clock was read once before the arm and once after it for this alone.
  weighed.of->add_own_time(std::max(0.0, ended_s - began_s_ - weighed.seconds - 2 * reading_s_));
}

}  // namespace railpass::internal
