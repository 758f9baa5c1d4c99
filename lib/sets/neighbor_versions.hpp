// SPDX-License-Identifier: BSL-1.0
//
// The ways to exchange with one's neighbours: the MPI library's own, and orders of messages that
// end on any directed graph, whatever edges it has, also if no message is buffered:
//
//   isend_irecv  all messages are under way at once.
//   send_irecv   all receives are posted, then one message after the other is sent. Nobody waits
//                before its receives are posted, so each message that is sent finds one.
//   isend_recv   all messages are sent, then received one after the other. Likewise.
//   pairwise     by distance of ranks: in round d a rank sends to the one d after it and receives
//                from the one d before it, as far as there are edges, once for each edge. Who has
//                not ended the first round that not all have ended has partners that are in it or
//                beyond, and these have posted their half of it.
//
// Which versions run, and where, is in the list below. A version that keeps persistent requests is
// not among them: a datatype may be freed and another one have its handle, so whether a call has
// the arguments of an earlier one cannot be told.
#pragma once

#include "lib/sets/neighbors.hpp"
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

/// Those of one rank, over the lane of `joint`, which outlives it.
class neighbor_versions {
 public:
  /// Allocates all that calls need. `around` must outlive it.
  neighbor_versions(const neighbors& around, joint_lockstep& joint, const settings& values,
                    clock_function clock);

  /// What edge_question has answered, of the MPI library's own call; false if two edges here would
  /// be one there. Once, before the first call. Allocates nothing.
  bool connect(int rank, int num_ranks, std::span<const std::int32_t> edges);

  /// Runs this rank's part of a call by messages of railpass' own. After an error code, which is
  /// not raised yet, others wait for this rank. A rank that hears of one that has failed fails,
  /// too.
  int run(neighbor_version by, const neighbor_call& c);

 private:
  // A message: the neighbour's number, and how far its rank is, upwards from sender to receiver.
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
  // By distance; of two between the same ranks in the order that both ranks know.
  std::vector<edge> sends_, receives_;
  std::vector<MPI_Request> requests_;  // receives, then sends, as above
  std::vector<MPI_Status> statuses_;
};

}  // namespace railpass::internal
