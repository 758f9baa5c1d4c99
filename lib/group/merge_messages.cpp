// SPDX-License-Identifier: BSL-1.0
#include "lib/group/merge_messages.hpp"

#include "lib/call/own_errors.hpp"
#include "railpass/base/clock.hpp"

#include <algorithm>
#include <bit>

namespace railpass::internal {

using select::lockstep;
using select::merge_step;

namespace {

std::unique_lock<std::mutex> held(std::mutex* guarded) {
  return guarded ? std::unique_lock(*guarded) : std::unique_lock<std::mutex>();
}

constexpr std::size_t words_told = sizeof(told_clock) / sizeof(std::int32_t);
using told_words = std::array<std::int32_t, words_told>;

std::size_t most_children(int rank, int num_ranks) {
  std::size_t children = 0;
  for (const select::tree_position& tree : select::merge_trees(rank, num_ranks))
    children = std::max(children, std::size_t(tree.num_children()));
  return children;
}

int without_waiting(MPI_Request& request, MPI_Status& status) {
  int done = 0;
  if (const int failure = PMPI_Test(&request, &done, &status)) return failure;
  return done ? MPI_SUCCESS : MPI_ERR_PENDING;
}

int tag_of_merge(const lockstep& ls) {
  constexpr int num_tags = base_lane::fallback_tag - base_lane::first_merge_tag;
  static_assert(num_tags > 1);
  return base_lane::first_merge_tag + int(ls.merges() % num_tags);
}

}  // namespace

merge_messages::merge_messages(int rank, int num_ranks) : rank_(rank) {
  const std::size_t children = most_children(rank, num_ranks);
  receives_.resize(children, MPI_REQUEST_NULL);
  came_s_.resize(children);
  words_->reply.resize(select::merge_reply::max_words + words_told * most_children(0, num_ranks));
  reports_.resize(children * select::merge_report::max_words);
  sends_.reserve(2 * (children + 1));
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
  bool is_sending = false;
  for (MPI_Request& request : sends_) {
    int done = 0;
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) continue;
    PMPI_Request_free(&request);
    is_sending = true;
  }
  if (is_sending) (void)words_.release();  // the MPI library reads the words later
}

int merge_messages::make_due_steps(lockstep& ls, std::mutex* guarded, const wait_function& wait,
                                   bool& mismatch) {
  for (merge_step step; (step = ls.due()) != merge_step::none;)
    if (const int failure = make(step, ls, guarded, wait, mismatch)) return failure;
  return MPI_SUCCESS;
}

// An empty message, too, is a failure: its sender has left the communicator.
int merge_messages::receive(MPI_Request& request, const wait_function& wait, int& words) {
  MPI_Status status;
  if (const int failure = wait(request, status)) return failure;
  words = 0;
  PMPI_Get_count(&status, MPI_INT32_T, &words);
  return words > 0 ? MPI_SUCCESS : code_of(own_error::rank_failed);
}

void merge_messages::tell_children(std::size_t at, const select::tree_position& tree) {
  for (std::size_t i = 0; i < std::size_t(tree.num_children()); ++i) {
    const auto told = std::bit_cast<told_words>(clock_->tell(came_s_[i]));
    std::copy_n(told.begin(), words_told, &words_->reply[at + words_told * i]);
  }
}

void merge_messages::learn_clock(std::size_t words, const select::tree_position& tree) {
  const double received_s = steady_clock_s();
  const select::tree_position parent{tree.parent(), tree.num_ranks, tree.radix};
  const int children = parent.num_children();
  int mine = 0;
  while (parent.child(mine) != rank_) ++mine;
  told_words told{};
  std::copy_n(&words_->reply[words - words_told * std::size_t(children - mine)], words_told,
              told.begin());
  clock_->learn(std::bit_cast<told_clock>(told), asked_s_, received_s);
}

int merge_messages::make(merge_step step, lockstep& ls, std::mutex* guarded,
                         const wait_function& wait, bool& mismatch) {
  switch (step) {
    case merge_step::none:
      break;
    case merge_step::post: {
      for (MPI_Request& request : sends_) {
        MPI_Status status;
        if (const int failure = wait(request, status)) return failure;
      }
      sends_.clear();
      const auto lock = held(guarded);
      if (clock_) ls.know_clock(clock_->known());
      ls.post();
      return start_receives(ls);
    }
    case merge_step::collect: {
      const int child = ls.child();
      int words = 0;
      if (const int failure = receive(receives_[std::size_t(child)], wait, words)) return failure;
      if (clock_) came_s_[std::size_t(child)] = steady_clock_s();
      ls.add(report_of(child));
      break;
    }
    case merge_step::report: {
      const auto lock = held(guarded);
      if (rank_ > 0) {
        const std::span words = ls.report();
        std::ranges::copy(words, words_->report.begin());
        if (clock_) asked_s_ = steady_clock_s();
        return send(std::span(words_->report).first(words.size()), ls.tree().parent(), ls);
      }
      ls.answer();
      break;
    }
    case merge_step::receive: {
      int words = 0;
      if (const int failure = receive(receive_, wait, words)) return failure;
      if (clock_) learn_clock(std::size_t(words), ls.tree());
      std::copy_n(words_->reply.begin(), ls.reply_room().size(), ls.reply_room().begin());
      ls.received();
      break;
    }
    case merge_step::deliver: {
      const select::tree_position tree = ls.tree();
      const int child = ls.child();
      const std::span words = ls.reply();
      std::size_t size = words.size();
      // The same message for all children, as the first one may be under way.
      if (child == tree.num_children() - 1) {
        std::ranges::copy(words, words_->reply.begin());
        if (clock_) tell_children(size, tree);
      }
      if (clock_) size += words_told * std::size_t(tree.num_children());
      return send(std::span(words_->reply).first(size), tree.child(child), ls);
    }
    case merge_step::consume: {
      const auto lock = held(guarded);
      mismatch = ls.consume() == select::merge_outcome::mismatch;
      break;
    }
  }
  return MPI_SUCCESS;
}

bool merge_messages::conclude(lockstep& ls, std::mutex* guarded, bool& mismatch) {
  for (merge_step step; (step = ls.last_step()) != merge_step::none;)
    if (const int failure = make(step, ls, guarded, without_waiting, mismatch))
      return failure != MPI_ERR_PENDING;
  return true;
}

void merge_messages::leave(lockstep& ls, std::mutex* guarded, bool& mismatch) {
  (void)conclude(ls, guarded, mismatch);
  const merge_step step = ls.last_step();
  const bool has_reported = step != merge_step::collect && step != merge_step::report;
  if (rank_ > 0 && step != merge_step::none && !has_reported) send({}, ls.tree().parent(), ls);
  if (ls.is_last()) return;  // nothing is replied
  int to_answer = 0;
  if (step == merge_step::collect || step == merge_step::report || step == merge_step::receive)
    to_answer = ls.tree().num_children();
  else if (step == merge_step::deliver)
    to_answer = ls.child() + 1;
  for (int child = 0; child < to_answer; ++child) send({}, ls.tree().child(child), ls);
}

bool merge_messages::has_settled() {
  bool all = true;
  const auto look = [&](MPI_Request& request) {
    int done = 0;
    all = PMPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done && all;
  };
  std::ranges::for_each(sends_, look);
  std::ranges::for_each(receives_, look);
  look(receive_);
  return all;
}

int merge_messages::send(std::span<const std::int32_t> words, int to, const lockstep& ls) {
  sends_.push_back(MPI_REQUEST_NULL);
  return lane_->isend(words.data(), int(words.size()), to, tag_of_merge(ls), &sends_.back());
}

int merge_messages::start_receives(const lockstep& ls) {
  std::ranges::fill(reports_, select::merge_report::neutral);
  const select::tree_position& tree = ls.tree();
  const int tag = tag_of_merge(ls);
  for (int i = 0; i < tree.num_children(); ++i)
    if (const int failure = lane_->irecv(report_of(i).data(), select::merge_report::max_words,
                                         tree.child(i), tag, &receives_[std::size_t(i)]))
      return failure;
  return rank_ == 0 || ls.is_last() ? MPI_SUCCESS
                                    : lane_->irecv(words_->reply.data(), int(words_->reply.size()),
                                                   tree.parent(), tag, &receive_);
}

}  // namespace railpass::internal
