// SPDX-License-Identifier: BSL-1.0
//
// A rank's neighbours in the topology of a communicator, and which messages of theirs are meant for
// which place where there are several between two ranks.
#pragma once

#include "lib/sets/neighbor_call.hpp"

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

namespace railpass::internal {

/// In the order in which MPI's neighbourhood collectives count them; nobody is MPI_PROC_NULL.
struct neighbors {
  std::vector<int> sources, destinations;

  /// Those of a communicator that has a topology. Local; throws std::bad_alloc.
  static neighbors of(MPI_Comm comm);
};

/// Whether it has one: a grid, a graph or a distributed graph. Local.
bool has_topology(MPI_Comm comm);

/// Elements of a user's side that are of one neighbour.
struct neighbor_block {
  std::byte* memory = nullptr;
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

class neighbor_blocks {
 public:
  /// Of a side of a valid call; `is_one`: all neighbours have the same. `of` must outlive it.
  neighbor_blocks(const call_side& of, bool is_one);
  neighbor_block operator[](int neighbor) const;

 private:
  const call_side& of_;
  std::int64_t stride_bytes_ = 0;  // of displacements, or from block to block
};

/// A question to the MPI library: which edge of a neighbour is it that ends in which edge here?
/// MPI's text leaves that open where two ranks have several edges in one direction, or are both
/// neighbours of each other in a periodic grid, and libraries differ, even from call to call.
class edge_question {
 public:
  /// Allocates all it needs.
  edge_question(const neighbors& around, neighbor_function f);

  /// Asks the library's own call, or its nonblocking one: by source, the number of the edge at that
  /// rank. False: this rank has got no sensible answer. Collective over the communicator.
  bool ask(MPI_Comm comm, bool nonblocking, std::span<std::int32_t> edges);

 private:
  const neighbors& around_;
  neighbor_function f_;
  std::vector<std::int32_t> sent_, received_;  // by edge: rank and number
  std::vector<int> counts_, places_;
  std::vector<MPI_Aint> places_bytes_;
  std::vector<MPI_Datatype> types_;
};

}  // namespace railpass::internal
