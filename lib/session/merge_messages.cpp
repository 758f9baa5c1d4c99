// SPDX-License-Identifier: BSL-1.0
#include "lib/session/merge_messages.hpp"

#include "lib/exec/execution.hpp"

#include <algorithm>

namespace railpass {

using select::lockstep;
using select::merge_step;

namespace {

std::unique_lock<std::mutex> held(std::mutex* guarded) {
  return guarded ? std::unique_lock(*guarded) : std::unique_lock<std::mutex>();
}

/// Apart from the tags of schedules, and within what every MPI has.
int tag_of_merge(const lockstep& ls) {
  return num_schedule_tags + int(ls.merges() % (32768 - num_schedule_tags));
}

}  // namespace

merge_messages::merge_messages(int rank, int num_ranks) : rank_(rank) {
  std::size_t children = 0;
  for (const select::tree_place& place : select::merge_trees(rank, num_ranks))
    children = std::max(children, std::size_t(place.num_children()));
  receives_.resize(children, MPI_REQUEST_NULL);
  reports_.resize(children * lockstep::max_report_words);
  sends_.reserve(children + 1);
}

merge_messages::~merge_messages() {
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (finalized) return;
  const auto give_up = [](MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return;
    PMPI_Cancel(&request);  // nothing must be written to its memory later
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
  };
  std::ranges::for_each(receives_, give_up);
  give_up(receive_);
}

int merge_messages::make_due_steps(lockstep& ls, std::mutex* guarded, const wait_function& wait,
                                   bool& mismatch) {
  for (merge_step step; (step = ls.due()) != merge_step::none;)
    if (const int failure = make(step, ls, guarded, wait, mismatch)) return failure;
  return MPI_SUCCESS;
}

int merge_messages::finish(lockstep& ls, std::mutex* guarded, const wait_function& wait,
                           bool& mismatch) {
  for (merge_step step; (step = ls.outstanding()) != merge_step::none;)
    if (const int failure = make(step, ls, guarded, wait, mismatch)) return failure;
  for (MPI_Request& request : sends_)
    if (const int failure = wait(request)) return failure;
  sends_.clear();
  return MPI_SUCCESS;
}

int merge_messages::make(merge_step step, lockstep& ls, std::mutex* guarded,
                         const wait_function& wait, bool& mismatch) {
  switch (step) {
    case merge_step::none:
      break;
    case merge_step::post: {
      for (MPI_Request& request : sends_)
        if (const int failure = wait(request)) return failure;
      sends_.clear();
      const auto lock = held(guarded);
      ls.post();
      return start_receives(ls);
    }
    case merge_step::collect: {
      const int child = ls.child();
      if (const int failure = wait(receives_[std::size_t(child)])) return failure;
      ls.add(report_of(child));
      break;
    }
    case merge_step::report: {
      const auto lock = held(guarded);
      if (rank_ > 0) return send(ls.report(), ls.tree().parent(), ls);
      ls.answer();
      break;
    }
    case merge_step::receive:
      if (const int failure = wait(receive_)) return failure;
      ls.received();
      break;
    case merge_step::deliver: {
      const int to = ls.tree().child(ls.child());
      return send(ls.reply(), to, ls);
    }
    case merge_step::consume: {
      const auto lock = held(guarded);
      mismatch = ls.consume() == select::merge_outcome::mismatch;
      break;
    }
  }
  return MPI_SUCCESS;
}

int merge_messages::send(std::span<const std::int32_t> words, int to, const lockstep& ls) {
  sends_.push_back(MPI_REQUEST_NULL);
  return PMPI_Isend(words.data(), int(words.size()), MPI_INT32_T, to, tag_of_merge(ls), comm_,
                    &sends_.back());
}

int merge_messages::start_receives(lockstep& ls) {
  std::ranges::fill(reports_, lockstep::neutral);
  const auto start = [&](std::span<std::int32_t> words, int from, MPI_Request& request) {
    return PMPI_Irecv(words.data(), int(words.size()), MPI_INT32_T, from, tag_of_merge(ls), comm_,
                      &request);
  };
  const select::tree_place& tree = ls.tree();
  for (int i = 0; i < tree.num_children(); ++i)
    if (const int failure = start(report_of(i), tree.child(i), receives_[std::size_t(i)]))
      return failure;
  return rank_ == 0 ? MPI_SUCCESS : start(ls.reply_room(), tree.parent(), receive_);
}

}  // namespace railpass
