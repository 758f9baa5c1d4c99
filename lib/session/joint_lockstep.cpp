// SPDX-License-Identifier: BSL-1.0
#include "lib/session/joint_lockstep.hpp"

#include "lib/session/device_memory.hpp"
#include "lib/session/own_errors.hpp"
#include "lib/session/process.hpp"
#include "railpass/base/settings.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <sched.h>
#include <utility>

namespace railpass {

std::string name_of_communicator(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  return {name, std::size_t(length)};
}

joint_lockstep::joint_lockstep(const settings& values, process& owner, int rank, int num_ranks,
                               std::string subject)
    : steps_({.max_contexts = int(std::min<std::int64_t>(values.contexts, 1 << 16))}, rank,
             num_ranks),
      process_(owner),
      settings_(values),
      rank_(rank),
      num_ranks_(num_ranks),
      subject_(std::move(subject)) {
  int threads = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&threads);
  is_shared_ = threads == MPI_THREAD_MULTIPLE && rank == 0;
  if (num_ranks < 2) return;
  lane_ = std::make_shared<base_lane>();
  merges_ = std::make_unique<merge_messages>(rank, num_ranks);
  merges_->connect(lane_);
}

void joint_lockstep::connect(base_place place, int lane_number) {
  lane_->become(std::move(place), lane_number);
  over_mpi_.emplace(*lane_);
}

// ---- first plans

int joint_lockstep::begin_context(int context, select::plan_message message) {
  plan_ = message;
  if (merges_)
    if (const int failure = pass_on_plan()) return failure;
  const std::unique_lock lock = guard();
  return steps_.adopt(context, plan_) ? MPI_SUCCESS : code_of(own_error::unlike);
}

// From rank 0 along a binomial tree, by MPI's messages also where calls go over rails: these may
// have failed. A rank whose schedules fail passes plans on all the same, and one that is in another
// call does, too. Their tag is nobody else's, as ranks that differ wait for one or not.
int joint_lockstep::pass_on_plan() {
  const int words = int(plan_.size());
  const int own_bit = rank_ == 0 ? int(std::bit_ceil(unsigned(num_ranks_))) : rank_ & -rank_;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  if (rank_ != 0) {
    const awaited_peer parent{.rank = rank_ - own_bit, .receives = 1};
    int code = lane_->irecv(plan_.data(), words, parent.rank, base_lane::plan_tag, &request);
    if (code == MPI_SUCCESS) code = wait_for(request, status, &parent);
    if (code != MPI_SUCCESS) return code;
  }
  for (int bit = own_bit / 2; bit > 0; bit /= 2) {
    const awaited_peer child{.rank = rank_ + bit, .sends = 1};
    if (child.rank >= num_ranks_) continue;
    int code = lane_->isend(plan_.data(), words, child.rank, base_lane::plan_tag, &request);
    if (code == MPI_SUCCESS) code = wait_for(request, status, &child);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

// ---- times and merges

void joint_lockstep::record(const select::timed_call& chosen, double started_s, double ended_s,
                            bool gave_core) {
  const std::unique_lock lock = guard();
  if (chosen.timed)
    steps_.record(chosen, ended_s - started_s, steps_.gap_s(chosen, started_s), gave_core);
  if (chosen.notes_end) steps_.note_end(chosen, ended_s);
}

void joint_lockstep::merge_steps() {
  if (!merges_) {
    const std::unique_lock lock = guard();
    steps_.begin_steps(process_.clock()());
    while (steps_.due() != select::merge_step::none) (void)steps_.step_alone();
    steps_.end_steps(process_.clock()());
    return;
  }
  {
    const std::unique_lock lock = guard();
    steps_.begin_steps(process_.clock()());
  }
  bool mismatch = false;
  const int code = merges_->make_due_steps(
      steps_, is_shared_ ? &mutex_ : nullptr,
      [this](MPI_Request& r, MPI_Status& s) { return wait_for(r, s); }, mismatch);
  note_merge(code, mismatch);
  {
    const std::unique_lock lock = guard();
    steps_.end_steps(process_.clock()());
  }
  if (rank_ == 0) process_.after_merge();
}

void joint_lockstep::leave() {
  if (!merges_) return;
  bool mismatch = false;
  merges_->leave(steps_, is_shared_ ? &mutex_ : nullptr, mismatch);
  note_merge(MPI_SUCCESS, mismatch);
  // Others may still make calls here, and wait in them: but not for this rank, once a merge has
  // told all to stay native.
  if (failed_ && !steps_.native_for_good()) lane_->tell_all(base_lane::trouble::gone);
  try {
    bases::of_process().settle();
    bases::of_process().keep(std::move(merges_));
  } catch (const std::bad_alloc&) {  // what comes is dropped, and the number is not used again
    lane_->lose();
  }
}

void joint_lockstep::note_merge(int code, bool mismatch) {
  if (code != MPI_SUCCESS) leave_others();
  if (!mismatch || failed_) return;
  if (steps_.device_found())
    process_.record(subject_ + " is not tuned any more: " + std::string(told_of_device_memory));
  else
    process_.record("the ranks of " + subject_ +
                    " did not make the same calls through railpass; it is not tuned any more");
}

int joint_lockstep::wait_for(MPI_Request& request, MPI_Status& status, const awaited_peer* told) {
  constexpr unsigned tests_per_look = 16, tests_per_clock = 1024;
  std::optional<patience> left;
  unsigned tests = 0;
  for (int done = 0;;) {
    if (const int failure = PMPI_Test(&request, &done, &status)) return failure;
    if (done) return MPI_SUCCESS;
    if (++tests % tests_per_look == 0) {
      keep_on();
      // A merge says to all ranks that nothing is tuned any more, unlike calls or not.
      if (told ? is_lost() : gone_) return code_of(failure_);
    }
    if (told && tests % tests_per_clock == 0) {
      const double now_s = process_.clock()();
      if (!left) left.emplace(patience_s(), now_s);
      if (left->is_out(now_s)) tell_wait("the first plan", {told, 1}, left->waited_s(now_s));
    }
    sched_yield();
  }
}

// ---- failures

void joint_lockstep::fail(own_error why) {
  if (failed_) return;
  failed_ = true;
  failure_ = why;
  if (lane_) {
    lane_->lose();
    lane_->tell_all(why == own_error::unlike ? base_lane::trouble::unlike
                                             : base_lane::trouble::failed);
  }
  const std::unique_lock lock = guard();
  steps_.give_up();
}

void joint_lockstep::leave_others() {
  fail();
  if (std::exchange(gone_, true) || !lane_) return;
  lane_->tell_all(base_lane::trouble::gone);
}

void joint_lockstep::keep_on() {
  if (companion_ && !failed_ && !companion_()) fail();
  const base_lane::news heard = lane_->look();
  if (heard.announced) hear(heard.announcer, *heard.announced);
  const base_lane::trouble what = heard.worst;
  if (what == base_lane::trouble::none) return;
  const bool unlike = what == base_lane::trouble::unlike;
  if (!failed_ && !unlike)
    process_.record("another rank has failed in a call of " + subject_ +
                    ": its calls fail until all ranks know, and are not tuned from then on");
  fail(unlike ? own_error::unlike : own_error::rank_failed);
  gone_ = gone_ || what == base_lane::trouble::gone;
}

double joint_lockstep::patience_s() const {
  constexpr double most_s = 1;
  return std::min(settings_.hang_report, most_s);
}

void joint_lockstep::hear(std::int32_t from, const told_call& theirs) {
  if (failed_) return;
  try {
    why_unlike_ = told_.difference(from, theirs);
  } catch (const std::bad_alloc&) {  // it is told again
  }
  if (!why_unlike_.empty()) fail(own_error::unlike);
}

void joint_lockstep::tell_wait(std::string_view doing, std::span<const awaited_peer> peers,
                               double waited_s) {
  if (const told_call* const own = told_.find(steps_.calls()))
    for (const awaited_peer& p : peers) lane_->announce(*own, p.rank);
  if (waited_s < settings_.hang_report) return;
  double told_s = settings_.hang_report;
  while (2 * told_s <= waited_s) told_s *= 2;
  std::string text = "rank " + std::to_string(rank_) + " of " + std::to_string(num_ranks_) +
                     " is inside call " + std::to_string(steps_.calls()) + " of " + subject_ +
                     " (" + std::string(doing) + ") for more than " + detail::show_setting(told_s) +
                     " s and waits for";
  for (const awaited_peer& p : peers)
    text += " rank " + std::to_string(p.rank) + " (" + std::to_string(p.sends) + " sends, " +
            std::to_string(p.receives) + " receives)";
  process_.record(text);
}

}  // namespace railpass
