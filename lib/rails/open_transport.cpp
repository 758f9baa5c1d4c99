// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/open_transport.hpp"

#include "lib/rails/agreement.hpp"
#include "railpass/transport/strategies.hpp"

#include <algorithm>
#include <array>
#include <poll.h>
#include <sched.h>
#include <time.h>

namespace railpass {

namespace {

// What nobody has measured yet: the first messages tell the rates.
constexpr double assumed_latency_s = 50e-6;
constexpr double assumed_bytes_per_s = 125e6;
constexpr double farewell_deadline_s = 10;

constexpr int polls_before_yield = 64;
constexpr int least_patience = 128, most_patience = 512;  // polls before it sleeps
constexpr double soon_s = 50e-6;  // about what waking up takes, and as much again

}  // namespace

open_transport::open_transport(MPI_Comm comm, const std::string& rails, const std::string& strategy)
    : comm_(comm), names_(rails) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &num_ranks_);
  std::unique_ptr<transport::strategy> how;
  on_all(comm, [&] { how = transport::make_strategy(strategy); });
  packet_rails driven = open_packet_rails(comm, rails);
  on_all(comm, [&] {
    can_sleep_ = std::ranges::all_of(driven, [](const auto& r) { return r->descriptor() >= 0; });
    const std::vector<transport::transfer_time> times(
        driven.size(), transport::transfer_time(assumed_latency_s, assumed_bytes_per_s));
    transport_.emplace(rank, num_ranks_, std::move(driven), times, false, std::move(how));
  });
}

void open_transport::give_way(int empty) {
  const int patience = patience_.load(std::memory_order_relaxed);
  if (empty <= patience || !can_sleep_) {
    if (empty >= polls_before_yield) sched_yield();
    return;
  }
  std::array<pollfd, transport::most_rails> readable;
  std::size_t n = 0;
  for (const auto& r : transport_->rails())
    readable[n++] = {.fd = r->descriptor(), .events = POLLIN, .revents = 0};
  const timespec at_most{.tv_sec = 0, .tv_nsec = 200'000};
  const double began_s = steady_clock_s();
  const bool came = ppoll(readable.data(), nfds_t(n), &at_most, nullptr) > 0;
  // A rank that looks for what comes late keeps the core from who has work, and is then given none
  // itself when it has.
  const bool soon = came && steady_clock_s() - began_s < soon_s;
  patience_.store(std::clamp(soon ? 2 * patience : patience / 2, least_patience, most_patience),
                  std::memory_order_relaxed);
  int flag = 0;
  // Once it is closed MPI may be gone, too.
  if (phase_ != phase::closed)
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
}

bool open_transport::close_step() {
  const std::lock_guard lock(mutex_);
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
          phase_ = phase::closed;
        else if (steady_clock_s() > deadline_s_)
          throw error("not all ranks have ended their messages within 10 s");
        return phase_ == phase::closed;
      case phase::closed:
        return true;
    }
  } catch (const std::exception& e) {
    transport_->fail(e.what());
    if (phase_ == phase::gathering) return false;  // the others are to find this rank there
    phase_ = phase::closed;
    throw;
  }
  return true;
}

void open_transport::close() {
  for (int empty = 0; !close_step(); ++empty) give_way(empty);
}

}  // namespace railpass
