// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/open_transport.hpp"

#include "lib/rails/agreement.hpp"
#include "railpass/transport/strategies.hpp"

#include <exception>
#include <limits>
#include <random>
#include <sched.h>

namespace railpass::internal {

namespace {

// Assumptions before any measurement: the first messages give the rates.
constexpr double assumed_latency_s = 50e-6;
constexpr double assumed_bytes_per_s = 125e6;
constexpr double farewell_deadline_s = 10;

constexpr int most_turns = 64;  // given to threads that want the lock

}  // namespace

open_transport::open_transport(MPI_Comm comm, const mpi_tags& over, const std::string& rails,
                               const std::string& strategy, double silence_s)
    : comm_(over.comm), names_(rails), strategy_(strategy) {
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &num_ranks_);
  std::unique_ptr<transport::strategy> how;
  on_all(comm, [&] {
    how = transport::make_strategy(strategy);
    std::random_device random;
    id_ = std::uint64_t(random()) << 32 | random();
  });
  PMPI_Bcast(&id_, 1, MPI_UINT64_T, 0, comm);
  packet_rails driven = open_packet_rails(comm, over, rails);
  on_all(comm, [&] {
    const std::vector<transport::transfer_time> times(
        driven.size(), transport::transfer_time(assumed_latency_s, assumed_bytes_per_s));
    transport_.emplace(rank_, num_ranks_, std::move(driven), times, false, std::move(how),
                       transport::transport_options{.silence_s = silence_s});
    waiting_.emplace(transport_->rails());
  });
  try {
    posting_.emplace(id_, num_ranks_, *transport_);
  } catch (const std::exception& e) {
    board_problem_ = e.what();
  }
  PMPI_Comm_group(comm, &group_);
}

open_transport::~open_transport() {
  if (!closed_) end();
}

// A thread that keeps on polling has the lock again before one that waits for it is awake.
std::unique_lock<std::mutex> open_transport::locked() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) {
    ++locked_out_;
    lock.lock();
    --locked_out_;
  }
  if (posting_) posting_->post();
  return lock;
}

void open_transport::wait_for(MPI_Request& request) {
  int done = 0;
  for (unsigned empty = 0;; ++empty) {
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    try {
      if (with([](transport::transport& t) { return t.alive() && t.progress(); })) empty = 0;
    } catch (const std::exception&) {  // the other ranks must find this rank there
    }
    give_way(empty);
  }
}

std::optional<std::uint32_t> open_transport::new_channel() {
  const std::unique_lock lock = locked();
  const auto number = std::uint64_t(++last_channel_) * std::uint64_t(num_ranks_) +
                      std::uint64_t(rank_) + founding_channel + 1;
  if (number > std::numeric_limits<transport::channel>::max()) {
    --last_channel_;
    return std::nullopt;
  }
  return std::uint32_t(number);
}

bool open_transport::hold(bool has_held) {
  const std::unique_lock lock = locked();
  if (!transport_->alive() || !(offered_ || has_held)) return false;
  try {
    transport_->progress();  // a connection may have broken while unused
  } catch (const std::exception&) {
    return false;
  }
  ++lanes_;
  return true;
}

bool open_transport::release() {
  const std::unique_lock lock = locked();
  return --lanes_ > 0 || transport_->alive();
}

void open_transport::keep() {
  const std::unique_lock lock = locked();
  kept_ = true;
}

int open_transport::begin_release(bool spans) {
  const std::unique_lock lock = locked();
  if (spans) offered_ = false;
  return lanes_ - 1 + (kept_ ? 1 : 0);
}

void open_transport::end_release(bool may_go_on) {
  const std::unique_lock lock = locked();
  --lanes_;
  if (may_go_on) offered_ = true;
}

void open_transport::give_way(unsigned empty) {
  for (int turn = 0; turn < most_turns && locked_out_.load(std::memory_order_relaxed) > 0; ++turn)
    sched_yield();
  if (!waiting_->give_way(empty)) return;
  int flag = 0;
  // Once it is closed MPI may be gone, too.
  if (!closed_) PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
}

void open_transport::close() {
  MPI_Request gathering = MPI_REQUEST_NULL;
  PMPI_Ibarrier(comm_, &gathering);
  wait_for(gathering);
  const double until_s = steady_clock_s() + farewell_deadline_s;
  try {
    with([](transport::transport& t) { t.say_farewell(); });
    if (!wait([](transport::transport& t) { return t.all_have_said_farewell(); }, until_s))
      throw error("not all ranks have ended their messages within 10 s");
  } catch (const std::exception& e) {
    with([&](transport::transport& t) { t.fail(e.what()); });
    end();
    throw;
  }
  end();
  PMPI_Comm_free(&comm_);
}

bool open_transport::leave() {
  return with([](transport::transport& t) {
    try {
      t.progress();
      t.say_farewell();
      return t.all_have_said_farewell();
    } catch (const std::exception&) {  // the other ranks notice
      return true;
    }
  });
}

std::optional<int> open_transport::owed() {
  return with([](transport::transport& t) { return t.owed(); });
}

std::string open_transport::failure() {
  return with([](transport::transport& t) { return t.failure(); });
}

void open_transport::part() {
  with([](transport::transport& t) {
    try {
      t.part_at_once();
    } catch (const std::exception&) {  // the other ranks notice
    }
  });
}

void open_transport::end() {
  const std::unique_lock lock(mutex_);
  posting_.reset();
  closed_ = true;
  PMPI_Group_free(&group_);
}

}  // namespace railpass::internal
