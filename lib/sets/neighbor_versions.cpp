// SPDX-License-Identifier: BSL-1.0
#include "lib/sets/neighbor_versions.hpp"

#include "lib/call/own_errors.hpp"
#include "lib/exec/wait_watch.hpp"
#include "lib/rails/mpi/rail.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <tuple>

namespace railpass::internal {

namespace {

// Messages between two ranks are matched in their order: one tag is enough, and calls follow each
// other. First plans, which have the same ones, come between calls.
constexpr int tag = 0;

}  // namespace

neighbor_versions::neighbor_versions(const neighbors& around, joint_lockstep& joint,
                                     const settings& values, clock_function clock)
    : around_(around), joint_(joint), settings_(values), clock_(clock) {
  const auto edges_to = [](const std::vector<int>& all) {
    std::vector<edge> result;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != MPI_PROC_NULL) result.push_back({.neighbor = std::int32_t(i)});
    return result;
  };
  sends_ = edges_to(around.destinations);
  receives_ = edges_to(around.sources);
  requests_.assign(sends_.size() + receives_.size(), MPI_REQUEST_NULL);
  statuses_.resize(requests_.size());
}

bool neighbor_versions::connect(int rank, int num_ranks, std::span<const std::int32_t> edges) {
  yields_.emplace(joint_.lane().has_core_per_rank());
  for (edge& e : sends_)
    e.distance = (around_.destinations[std::size_t(e.neighbor)] - rank + num_ranks) % num_ranks;
  for (edge& e : receives_)
    e.distance = (rank - around_.sources[std::size_t(e.neighbor)] + num_ranks) % num_ranks;
  const auto number_there = [&](const edge& e) { return edges[std::size_t(e.neighbor)]; };
  std::ranges::sort(sends_, {}, [](const edge& e) { return std::tuple(e.distance, e.neighbor); });
  std::ranges::sort(receives_, {},
                    [&](const edge& e) { return std::tuple(e.distance, number_there(e)); });
  const auto is_same = [&](const edge& a, const edge& b) {
    return a.distance == b.distance && number_there(a) == number_there(b);
  };
  return std::ranges::adjacent_find(receives_, is_same) == receives_.end();
}

int neighbor_versions::run(neighbor_version by, const neighbor_call& c) {
  const exchange e{c, {c.send, c.sends_one_block()}, {c.receive, false}};
  int code = MPI_ERR_INTERN;
  if (by == neighbor_version::isend_irecv) code = send_and_receive_at_once(e);
  if (by == neighbor_version::send_irecv) code = send_in_turn(e);
  if (by == neighbor_version::isend_recv) code = receive_in_turn(e);
  if (by == neighbor_version::pairwise) code = pairwise(e);
  if (code != MPI_SUCCESS) abandon(requests_);
  return code;
}

// ---- orders

int neighbor_versions::send_and_receive_at_once(const exchange& e) {
  if (const int failure = post_receives(e)) return failure;
  if (const int failure = post_sends(e)) return failure;
  return wait(0, requests_.size());
}

int neighbor_versions::send_in_turn(const exchange& e) {
  if (const int failure = post_receives(e)) return failure;
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    if (const int failure = post_send(e, i)) return failure;
    if (const int failure = wait_for_send(i)) return failure;
  }
  return wait(0, receives_.size());
}

int neighbor_versions::receive_in_turn(const exchange& e) {
  if (const int failure = post_sends(e)) return failure;
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    if (const int failure = post_receive(e, i)) return failure;
    if (const int failure = wait_for_receive(i)) return failure;
  }
  return wait(receives_.size(), sends_.size());
}

int neighbor_versions::pairwise(const exchange& e) {
  constexpr std::int32_t none = -1;
  const auto distance_of = [](const std::vector<edge>& all, std::size_t i) {
    return i < all.size() ? all[i].distance : none;
  };
  for (std::size_t s = 0, r = 0; s < sends_.size() || r < receives_.size();) {
    const std::int32_t to = distance_of(sends_, s), from = distance_of(receives_, r);
    const bool receives = to == none || (from != none && from <= to);
    const bool sends = from == none || (to != none && to <= from);
    if (receives)
      if (const int failure = post_receive(e, r)) return failure;
    if (sends)
      if (const int failure = post_send(e, s)) return failure;
    if (receives)
      if (const int failure = wait_for_receive(r++)) return failure;
    if (sends)
      if (const int failure = wait_for_send(s++)) return failure;
  }
  return MPI_SUCCESS;
}

// ---- messages

int neighbor_versions::post_receive(const exchange& e, std::size_t i) {
  const int neighbor = receives_[i].neighbor;
  const neighbor_block b = e.received[neighbor];
  const base_lane& lane = joint_.lane();
  const int from = lane.ranks()[around_.sources[std::size_t(neighbor)]];
#if MPI_VERSION >= 4
  if (e.of.is_large)
    return PMPI_Irecv_c(b.memory, b.count, b.type, from, lane.first_tag() + tag, lane.of().comm,
                        &requests_[i]);
#endif
  return PMPI_Irecv(b.memory, int(b.count), b.type, from, lane.first_tag() + tag, lane.of().comm,
                    &requests_[i]);
}

int neighbor_versions::post_send(const exchange& e, std::size_t i) {
  const int neighbor = sends_[i].neighbor;
  const neighbor_block b = e.sent[neighbor];
  const base_lane& lane = joint_.lane();
  const int to = lane.ranks()[around_.destinations[std::size_t(neighbor)]];
#if MPI_VERSION >= 4
  if (e.of.is_large)
    return PMPI_Isend_c(b.memory, b.count, b.type, to, lane.first_tag() + tag, lane.of().comm,
                        &request_of_send(i));
#endif
  return PMPI_Isend(b.memory, int(b.count), b.type, to, lane.first_tag() + tag, lane.of().comm,
                    &request_of_send(i));
}

int neighbor_versions::post_receives(const exchange& e) {
  for (std::size_t i = 0; i < receives_.size(); ++i)
    if (const int failure = post_receive(e, i)) return failure;
  return MPI_SUCCESS;
}

int neighbor_versions::post_sends(const exchange& e) {
  for (std::size_t i = 0; i < sends_.size(); ++i)
    if (const int failure = post_send(e, i)) return failure;
  return MPI_SUCCESS;
}

// As the executor waits for its messages.
int neighbor_versions::wait(std::size_t first, std::size_t count) {
  if (count == 0) return MPI_SUCCESS;
  constexpr unsigned tests_before_yield = 64, tests_per_look = 16, tests_per_clock = 1024;
  std::optional<patience> left;
  for (unsigned tests = 1;; ++tests) {
    int done = 0;
    const int code =
        PMPI_Testall(int(count), requests_.data() + first, &done, statuses_.data() + first);
    if (code == MPI_ERR_IN_STATUS) {
      for (std::size_t i = first; i < first + count; ++i)
        if (const int failure = statuses_[i].MPI_ERROR;
            failure != MPI_SUCCESS && failure != MPI_ERR_PENDING)
          return failure;
    }
    if (code != MPI_SUCCESS) return code;
    if (done) return MPI_SUCCESS;
    if (tests < tests_before_yield) continue;
    yields_->offer_core();
    if (tests % tests_per_look == 0) {
      joint_.keep_on();
      if (joint_.has_failed()) return code_of(joint_.failure());
    }
    if (settings_.hang_report <= 0 || tests % tests_per_clock != 0) continue;
    const double now_s = clock_();
    if (!left) left.emplace(settings_.hang_report, now_s);
    if (left->is_out(now_s)) report(first, count, left->waited_s(now_s));
  }
}

void neighbor_versions::report(std::size_t first, std::size_t count, double waited_s) const {
  try {
    std::map<int, awaited_peer> peers;
    for (std::size_t i = first; i < first + count; ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      const bool receives = i < receives_.size();
      const int rank =
          receives ? around_.sources[std::size_t(receives_[i].neighbor)]
                   : around_.destinations[std::size_t(sends_[i - receives_.size()].neighbor)];
      awaited_peer& peer = peers.try_emplace(rank, awaited_peer{.rank = rank}).first->second;
      ++(receives ? peer.receives : peer.sends);
    }
    std::vector<awaited_peer> all;
    for (const auto& [rank, peer] : peers) all.push_back(peer);
    joint_.tell_wait("messages between neighbours", all, waited_s);
  } catch (const std::bad_alloc&) {  // the call goes on without the report
  }
}

}  // namespace railpass::internal
