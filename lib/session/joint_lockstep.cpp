// SPDX-License-Identifier: BSL-1.0
#include "lib/session/joint_lockstep.hpp"

#include "collectives/registry.hpp"
#include "lib/session/device_memory.hpp"
#include "lib/session/own_errors.hpp"
#include "lib/session/process.hpp"
#include "railpass/base/settings.hpp"

#include <algorithm>
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
  const arm binomial = parse_arm(collective::broadcast, "binomial");
  plan_broadcast_ = binomial.base->build(
      {.rank = rank, .num_ranks = num_ranks, .commutative = true, .result_rank = 0},
      binomial.values);
}

void joint_lockstep::connect(base_place place, int lane_number) {
  lane_->become(std::move(place), lane_number);
  over_mpi_.emplace(*lane_);
  // First plans must not fail on one rank alone.
  try {
    select::plan_message message{};
    over_mpi_->runs.prepare(plan_broadcast_, binding_of(message));
  } catch (const std::bad_alloc&) {  // maybe there is memory when it is needed
  }
}

// ---- first plans

int joint_lockstep::begin_context(int context, select::plan_message message) {
  if (merges_)
    if (const int failure = receive(message)) return failure;
  const std::unique_lock lock = guard();
  steps_.adopt(context, message);
  return MPI_SUCCESS;
}

// By MPI's messages also where calls go over rails: these may have failed. A rank whose schedules
// fail passes plans on all the same.
int joint_lockstep::receive(select::plan_message& message) {
  const wait_watch watch{.clock = process_.clock(),
                         .after_s = settings_.hang_report,
                         .report =
                             [](void* self, std::span<const awaited_peer> peers) {
                               static_cast<const joint_lockstep*>(self)->report_hang(
                                   "the first plan", peers);
                             },
                         .look = [](void* self) -> int {
                           auto& mine = *static_cast<joint_lockstep*>(self);
                           mine.keep_on();
                           return mine.gone_ ? code_of(own_error::rank_failed) : MPI_SUCCESS;
                         },
                         .user_data = this};
  return over_mpi_->runs.run(plan_broadcast_, binding_of(message), watch);
}

binding joint_lockstep::binding_of(select::plan_message& message) {
  auto* const memory = reinterpret_cast<std::byte*>(message.data());
  return {.input = memory,
          .output = memory,
          .size = {.units = std::int64_t(sizeof message), .unit_bytes = 1}};
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

int joint_lockstep::wait_for(MPI_Request& request, MPI_Status& status) {
  constexpr unsigned tests_per_look = 16;
  unsigned tests = 0;
  for (int done = 0;;) {
    if (const int failure = PMPI_Test(&request, &done, &status)) return failure;
    if (done) return MPI_SUCCESS;
    if (++tests % tests_per_look == 0) {
      keep_on();
      if (gone_) return code_of(own_error::rank_failed);
    }
    sched_yield();
  }
}

// ---- failures

void joint_lockstep::fail() {
  if (failed_) return;
  failed_ = true;
  if (lane_) {
    lane_->lose();
    lane_->tell_all(base_lane::trouble::failed);
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
  const base_lane::trouble what = lane_->look();
  if (what == base_lane::trouble::none) return;
  if (!failed_)
    process_.record("another rank has failed in a call of " + subject_ +
                    ": its calls fail until all ranks know, and are not tuned from then on");
  fail();
  gone_ = gone_ || what == base_lane::trouble::gone;
}

void joint_lockstep::report_hang(std::string_view doing,
                                 std::span<const awaited_peer> peers) const {
  std::string text = "rank " + std::to_string(rank_) + " of " + std::to_string(num_ranks_) +
                     " is inside call " + std::to_string(steps_.calls()) + " of " + subject_ +
                     " (" + std::string(doing) + ") for more than " +
                     detail::show_setting(settings_.hang_report) + " s and waits for";
  for (const awaited_peer& p : peers)
    text += " rank " + std::to_string(p.rank) + " (" + std::to_string(p.sends) + " sends, " +
            std::to_string(p.receives) + " receives)";
  process_.record(text);
}

}  // namespace railpass
