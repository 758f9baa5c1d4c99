// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/channel.hpp"

#include "railpass/base/error.hpp"

#include <exception>
#include <string>
#include <utility>

namespace railpass::internal {

namespace {

constexpr double deadline_s = 10;

}  // namespace

rail_channel::rail_channel(std::shared_ptr<open_transport> over, MPI_Comm comm,
                           std::uint32_t number, std::vector<int> members)
    : over_(std::move(over)),
      comm_(comm),
      number_(number),
      members_(std::move(members)),
      ranks_(std::size_t(over_->num_ranks()), -1),
      sent_(members_.size()) {
  for (std::size_t r = 0; r < members_.size(); ++r) ranks_[std::size_t(members_[r])] = int(r);
}

transport::operation_ptr rail_channel::send(int rank, int tag, std::vector<transport::piece> from,
                                            std::shared_ptr<void> owner) {
  // After a collective the program may block in MPI, where no message over rails advances.
  const bool may_end_early = !of_collectives();
  return over_->with([&](transport::transport& t) {
    auto op = t.send(peer_of(rank), tag, std::move(from), std::move(owner), number_, may_end_early);
    if (peer_of(rank) != t.rank()) ++sent_[std::size_t(rank)];
    return op;
  });
}

transport::operation_ptr rail_channel::receive(int source, int tag,
                                               std::vector<transport::piece> to) {
  return over_->with([&](transport::transport& t) {
    return t.receive(peer_or_any(source), tag, std::move(to), number_);
  });
}

transport::operation_ptr rail_channel::receive(
    int source, int tag, std::function<transport::piece(std::int64_t)> allocate) {
  return over_->with([&](transport::transport& t) {
    return t.receive(peer_or_any(source), tag, std::move(allocate), number_);
  });
}

void rail_channel::close() {
  if (std::exchange(closed_, true)) return;
  // Each rank learns how many messages are to come, and on how many ranks there are other channels.
  const bool spans = num_ranks() == over_->num_ranks();
  const int others = over_->begin_release(spans);
  std::vector<std::int64_t> mine;
  for (const std::int64_t n : sent_) {
    mine.push_back(n);
    mine.push_back(others > 0 ? 1 : 0);
  }
  std::int64_t all[2] = {0, 0};
  MPI_Request gathering = MPI_REQUEST_NULL;
  PMPI_Ireduce_scatter_block(mine.data(), all, 2, MPI_INT64_T, MPI_SUM, comm_, &gathering);
  over_->wait_for(gathering);
  const bool last = spans && all[1] == 0;
  std::string problem;
  try {
    empty(all[0]);
  } catch (const std::exception& e) {
    problem = e.what();
    over_->with([&](transport::transport& t) { t.fail(problem); });
  }
  // No rank leaves before all ranks have ended, because a rank that has left stops progressing
  // messages.
  int failed = problem.empty() ? 0 : 1;
  PMPI_Iallreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, comm_, &gathering);
  over_->wait_for(gathering);
  over_->end_release(spans && !last);
  if (last) over_->close();  // which all ranks come to
  if (!problem.empty()) throw error(problem);
  if (failed) throw error("another rank could not end its messages");
}

bool rail_channel::leave() {
  closed_ = true;
  over_->with([&](transport::transport& t) { t.leave(number_); });
  return over_->release();
}

// Waits until `expected` messages have come and all of this rank's have left.
void rail_channel::empty(std::int64_t expected) {
  const double until_s = steady_clock_s() + deadline_s;
  over_->with([&](transport::transport& t) { t.drop(number_); });
  const auto done = [&](transport::transport& t) {
    return t.arrived(number_) == expected && t.unsent(number_) == 0;
  };
  if (!over_->wait(done, until_s))
    throw error("not all ranks have ended their messages within 10 s");
  over_->with([&](transport::transport& t) { t.forget(number_); });
}

}  // namespace railpass::internal
