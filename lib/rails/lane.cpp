// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/lane.hpp"

#include "railpass/base/error.hpp"

#include <exception>
#include <utility>

namespace railpass {

namespace {

constexpr double deadline_s = 10;

}  // namespace

lane::lane(std::shared_ptr<open_transport> over, MPI_Comm comm, std::uint32_t number,
           std::vector<int> members)
    : over_(std::move(over)),
      comm_(comm),
      number_(number),
      members_(std::move(members)),
      ranks_(std::size_t(over_->num_ranks()), -1),
      sent_(members_.size()) {
  for (std::size_t r = 0; r < members_.size(); ++r) ranks_[std::size_t(members_[r])] = int(r);
}

transport::operation_ptr lane::send(traffic which, int rank, int tag,
                                    std::vector<transport::piece> from,
                                    std::shared_ptr<void> owner) {
  return over_->with([&](transport::transport& t) {
    auto op = t.send(peer_of(rank), tag, std::move(from), std::move(owner), channel_of(which));
    if (peer_of(rank) != t.rank()) ++sent_[std::size_t(rank)];
    return op;
  });
}

transport::operation_ptr lane::receive(traffic which, int source, int tag,
                                       std::vector<transport::piece> to) {
  return over_->with([&](transport::transport& t) {
    return t.receive(peer_or_any(source), tag, std::move(to), channel_of(which));
  });
}

transport::operation_ptr lane::receive(traffic which, int source, int tag,
                                       std::function<transport::piece(std::int64_t)> allocate) {
  return over_->with([&](transport::transport& t) {
    return t.receive(peer_or_any(source), tag, std::move(allocate), channel_of(which));
  });
}

void lane::wait_until_sent(traffic which) {
  over_->wait([&](transport::transport& t) { return t.unsent(channel_of(which)) == 0; });
}

void lane::close() {
  if (std::exchange(closed_, true)) return;
  // Each rank learns how many messages are to come, and on how many ranks there are other lanes.
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
  std::exception_ptr problem;
  try {
    empty(all[0], last);
  } catch (...) {
    problem = std::current_exception();
  }
  over_->end_release(spans && !last);
  if (last) over_->close();  // which all ranks come to
  if (problem) std::rethrow_exception(problem);
}

// Waits until `expected` messages have come and all of this rank's have left.
void lane::empty(std::int64_t expected, bool last) {
  const transport::channel first = channel_of(traffic::user),
                           second = channel_of(traffic::schedules);
  const bool empty = over_->wait(
      [&](transport::transport& t) {
        return t.unsent(first) + t.unsent(second) == 0 &&
               t.arrived(first) + t.arrived(second) == expected;
      },
      steady_clock_s() + deadline_s);
  over_->with([&](transport::transport& t) {
    const std::int64_t left = t.forget(first) + t.forget(second);
    if (empty) return;
    const std::string why = "not all ranks have ended their messages within 10 s";
    if (left > 0 || last) t.fail(why);
    throw error(why);
  });
}

}  // namespace railpass
