// SPDX-License-Identifier: BSL-1.0
//
// The versions of neighbourhood collectives: the MPI library's own, and orders of messages that end
// on any directed graph, even without buffering:
//
// * isend_irecv: all messages are under way at once.
// * send_irecv: all receives are posted, then messages are sent one after the other. No rank waits
//   before its receives are posted, so each sent message finds its receive.
// * isend_recv: all messages are sent, then received one after the other. The same argument holds.
// * pairwise: by distance of ranks. In round d, a rank sends to the rank d after it and receives
//   from the rank d before it, once for each edge. Consider the first round that some rank has not
//   ended: its partners are in this round or beyond, and have posted their half.
//
// Which versions run, and where, is in the list below. No version keeps persistent requests: a
// datatype may be freed and its handle reused, so equal arguments cannot be recognised.
#pragma once

#include "lib/base/yielding.hpp"
#include "lib/call/neighbors.hpp"
#include "lib/tuner/joint_lockstep.hpp"
#include "railpass/base/settings.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace railpass::internal {

enum class neighbor_version { native, isend_irecv, send_irecv, isend_recv, pairwise, ineighbor };
inline constexpr std::array<std::string_view, 6> neighbor_version_names{
    "native", "isend_irecv", "send_irecv", "isend_recv", "pairwise", "ineighbor"};

/// The versions on one rank, over the lane of `joint`, which must outlive this object.
class neighbor_versions {
 public:
  /// Allocates everything that calls need. `around` must outlive this object.
  neighbor_versions(const neighbors& around, joint_lockstep& joint, const settings& values,
                    clock_function clock);

  /// Takes the answer of edge_question about the MPI library's own call. False if two edges here
  /// would be the same edge there. Call once, before the first call. Allocates nothing.
  bool connect(int rank, int num_ranks, std::span<const std::int32_t> edges);

  /// Runs this rank's part of a call by messages of railpass. After an error code, which is not
  /// raised yet, other ranks wait for this rank. A rank that hears of another rank's failure fails,
  /// too.
  int run(neighbor_version by, const neighbor_call& c);

 private:
  // A message: the neighbour's number, and the distance upwards from sender to receiver.
  struct edge {
    std::int32_t neighbor = 0, distance = 0;
  };
  struct exchange {
    const neighbor_call& of;
    neighbor_blocks sent, received;
  };

  int send_and_receive_at_once(const exchange& e);
  int send_in_turn(const exchange& e);
  int receive_in_turn(const exchange& e);
  int pairwise(const exchange& e);

  int post_receive(const exchange& e, std::size_t i);
  int post_send(const exchange& e, std::size_t i);
  int post_receives(const exchange& e);
  int post_sends(const exchange& e);
  MPI_Request& request_of_send(std::size_t i) { return requests_[receives_.size() + i]; }
  int wait_for_receive(std::size_t i) { return wait(i, 1); }
  int wait_for_send(std::size_t i) { return wait(receives_.size() + i, 1); }
  int wait(std::size_t first, std::size_t count);
  void report(std::size_t first, std::size_t count, double waited_s) const;

  const neighbors& around_;
  joint_lockstep& joint_;
  const settings& settings_;
  clock_function clock_;
  std::optional<yielding> yields_;  // from connect() on
  // By distance; edges between the same two ranks in the order that both ranks know.
  std::vector<edge> sends_, receives_;
  std::vector<MPI_Request> requests_;  // receives, then sends, as above
  std::vector<MPI_Status> statuses_;
};

}  // namespace railpass::internal
