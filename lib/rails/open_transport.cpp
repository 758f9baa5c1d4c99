// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/open_transport.hpp"

#include "lib/rails/agreement.hpp"
#include "railpass/transport/strategies.hpp"

#include <exception>
#include <limits>
#include <random>
#include <sched.h>

namespace railpass {

namespace {

// What nobody has measured yet: the first messages tell the rates.
constexpr double assumed_latency_s = 50e-6;
constexpr double assumed_bytes_per_s = 125e6;
constexpr double farewell_deadline_s = 10;

constexpr int most_turns = 64;  // given to threads that want the lock

}  // namespace

open_transport::open_transport(MPI_Comm comm, const std::string& rails, const std::string& strategy,
                               double silence_s)
    : comm_(comm), names_(rails), strategy_(strategy) {
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &num_ranks_);
  std::unique_ptr<transport::strategy> how;
  on_all(comm, [&] {
    how = transport::make_strategy(strategy);
    std::random_device random;
    id_ = std::uint64_t(random()) << 32 | random();
  });
  PMPI_Bcast(&id_, 1, MPI_UINT64_T, 0, comm);
  packet_rails driven = open_packet_rails(comm, rails);
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
  for (int empty = 0, done = 0;; ++empty) {
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    try {
      if (with([](transport::transport& t) { return t.alive() && t.progress(); })) empty = 0;
    } catch (const std::exception&) {  // the others are to find this rank there
    }
    give_way(empty);
  }
}

std::optional<std::uint32_t> open_transport::new_lane() {
  const std::unique_lock lock = locked();
  const auto number = std::uint64_t(++last_lane_) * std::uint64_t(num_ranks_) +
                      std::uint64_t(rank_) + founding_lane + 1;
  if (number > std::numeric_limits<transport::channel>::max()) {
    --last_lane_;
    return std::nullopt;
  }
  return std::uint32_t(number);
}

bool open_transport::hold(bool has_held) {
  const std::unique_lock lock = locked();
  if (!transport_->alive() || !(offered_ || has_held)) return false;
  ++lanes_;
  return true;
}

void open_transport::release() {
  const std::unique_lock lock = locked();
  --lanes_;
}

int open_transport::begin_release(bool spans) {
  const std::unique_lock lock = locked();
  if (spans) offered_ = false;
  return lanes_ - 1;
}

void open_transport::end_release(bool may_go_on) {
  const std::unique_lock lock = locked();
  --lanes_;
  if (may_go_on) offered_ = true;
}

void open_transport::give_way(int empty) {
  for (int turn = 0; turn < most_turns && locked_out_.load(std::memory_order_relaxed) > 0; ++turn)
    sched_yield();
  if (!waiting_->give_way(empty)) return;
  int flag = 0;
  // Once it is closed MPI may be gone, too.
  if (phase_ != phase::closed)
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
}

bool open_transport::close_step() {
  const std::unique_lock lock = locked();
  try {
    switch (phase_.load()) {
      case phase::open:
        PMPI_Ibarrier(comm_, &gathered_);
        phase_ = phase::gathering;
        return false;
      case phase::gathering: {
        int all = 0;
        PMPI_Test(&gathered_, &all, MPI_STATUS_IGNORE);
        if (all) {
          phase_ = phase::parting;
          deadline_s_ = steady_clock_s() + farewell_deadline_s;
        }
        if (transport_->alive()) {
          transport_->progress();
          if (all) transport_->say_farewell();
        }
        return false;
      }
      case phase::parting:
        transport_->progress();
        if (transport_->all_have_said_farewell())
          end();
        else if (steady_clock_s() > deadline_s_)
          throw error("not all ranks have ended their messages within 10 s");
        return phase_ == phase::closed;
      case phase::closed:
        return true;
    }
  } catch (const std::exception& e) {
    transport_->fail(e.what());
    if (phase_ == phase::gathering) return false;  // the others are to find this rank there
    end();
    throw;
  }
  return true;
}

void open_transport::end() {
  posting_.reset();
  phase_ = phase::closed;
}

void open_transport::close() {
  for (int empty = 0; !close_step(); ++empty) give_way(empty);
  PMPI_Comm_free(&comm_);
}

}  // namespace railpass
