// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/leaders.hpp"

#include "lib/store/store.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/error.hpp"

#include <algorithm>
#include <exception>
#include <sched.h>
#include <utility>

namespace railpass::internal {

namespace {

// MPI libraries send messages up to this size at once, even if they are never received.
constexpr std::size_t most_bytes = 3584;
constexpr std::size_t most_under_way = 64;
constexpr std::size_t most_heard = 1024;

// As much as fits: native, and the arms with the most samples.
std::string message_of(knowledge::experience e) {
  const std::string nothing = store::encode({}, most_bytes);
  while (!e.arms.empty()) {
    std::string bytes = store::encode(std::span(&e, 1), most_bytes);
    if (bytes != nothing) return bytes;
    e.arms.erase(std::ranges::min_element(e.arms, {}, [](const knowledge::arm_experience& a) {
      return std::pair(a.arm == "native", a.times.samples);
    }));
  }
  return {};
}

}  // namespace

bool tells(int world_rank, int world_size, int num_ranks) {
  constexpr int most_alike = 64;
  const int alike = std::max(1, world_size / num_ranks), step = 1 + (alike - 1) / most_alike;
  return world_rank / num_ranks % step == 0;
}

bool leaders::has_base() {
  if (!world_.of) world_ = bases::of_process().find(MPI_COMM_WORLD);
  return world_.of != nullptr;
}

void leaders::send(std::string bytes) {
  message& m = under_way_.emplace_back(message{.bytes = std::move(bytes)});
  if (PMPI_Isend(m.bytes.data(), int(m.bytes.size()), MPI_BYTE, world_.ranks[0], base::told_tag,
                 world_.of->comm, &m.request) != MPI_SUCCESS)
    under_way_.pop_back();
}

void leaders::tell(std::span<const knowledge::experience> learnt) {
  const std::lock_guard lock(mutex_);
  if (!has_base()) return;
  under_way_.remove_if([](message& m) {
    int done = 0;
    PMPI_Test(&m.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
  for (const knowledge::experience& e : learnt)
    if (under_way_.size() < most_under_way)
      if (std::string bytes = message_of(e); !bytes.empty()) {
        send(std::move(bytes));
        has_told_ = true;
      }
}

void leaders::tell_last(std::span<const knowledge::experience> learnt) {
  if (!has_told_) return;
  tell(learnt);
  const std::lock_guard lock(mutex_);
  send({});
}

bool leaders::take_one() {
  int found = 0;
  MPI_Status status;
  if (PMPI_Iprobe(MPI_ANY_SOURCE, base::told_tag, world_.of->comm, &found, &status) !=
          MPI_SUCCESS ||
      !found)
    return false;
  int size = 0;
  PMPI_Get_count(&status, MPI_BYTE, &size);
  std::string bytes(std::size_t(std::max(0, size)), '\0');
  if (PMPI_Recv(bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, base::told_tag, world_.of->comm,
                MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return false;
  const int by = status.MPI_SOURCE;
  if (bytes.empty()) {
    speaking_.erase(by);
    return true;
  }
  speaking_.insert(by);
  try {
    for (knowledge::experience& e : store::decode(bytes)) {
      const auto known = std::ranges::find_if(
          heard_, [&](const told& t) { return t.by == by && t.what.of == e.of; });
      if (known != heard_.end())
        known->what = std::move(e);
      else if (heard_.size() < most_heard)
        heard_.push_back({by, std::move(e)});
    }
  } catch (const error&) {  // of another railpass: nothing is lost but this
  }
  return true;
}

void leaders::hear() {
  const std::lock_guard lock(mutex_);
  if (!has_base()) return;
  while (take_one()) continue;
}

void leaders::hear_last(double patience_s) {
  const double until_s = steady_clock_s() + patience_s;
  for (hear(); !speaking_.empty() && steady_clock_s() < until_s; hear()) sched_yield();
}

std::vector<knowledge::experience> leaders::heard() {
  const std::lock_guard lock(mutex_);
  std::vector<knowledge::experience> all;
  for (const told& t : heard_) all.push_back(t.what);
  return all;
}

}  // namespace railpass::internal
