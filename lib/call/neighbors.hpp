// SPDX-License-Identifier: BSL-1.0
//
// A rank's neighbours in the topology of a communicator. If two ranks share several edges: which
// edge of a neighbour ends in which edge here.
#pragma once

#include "lib/call/neighbor_call.hpp"

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

namespace railpass::internal {

/// In the order of MPI's neighbourhood collectives; MPI_PROC_NULL: no neighbour.
struct neighbors {
  std::vector<int> sources, destinations;

  /// The neighbours in a communicator that has a topology. Local; throws std::bad_alloc.
  static neighbors of(MPI_Comm comm);
};

/// Whether the communicator has a grid, a graph or a distributed graph. Local.
bool has_topology(MPI_Comm comm);

/// The elements of one neighbour in a user's side.
struct neighbor_block {
  std::byte* memory = nullptr;
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

class neighbor_blocks {
 public:
  /// For a side of a valid call. `is_one`: all neighbours have the same block. `of` must outlive
  /// this.
  neighbor_blocks(const call_side& of, bool is_one);
  neighbor_block operator[](int neighbor) const;

 private:
  const call_side& of_;
  std::int64_t stride_bytes_ = 0;  // of displacements, or from block to block
};

/// Asks the MPI library which edge of a neighbour ends in which edge here. The MPI standard leaves
/// this open if two ranks have several edges in one direction, or are neighbours on both sides in a
/// periodic grid. Libraries differ, even from call to call.
class edge_question {
 public:
  /// Allocates everything that it needs.
  edge_question(const neighbors& around, neighbor_function f);

  /// Asks by the library's blocking or nonblocking call. Stores by source the number of the edge at
  /// that rank. False: this rank got no valid answer. Collective over the communicator.
  bool ask(MPI_Comm comm, bool nonblocking, std::span<std::int32_t> edges);

 private:
  const neighbors& around_;
  neighbor_function f_;
  std::vector<std::int32_t> sent_, received_;  // by edge: rank and number
  std::vector<int> counts_, displacements_;
  std::vector<MPI_Aint> displacements_bytes_;
  std::vector<MPI_Datatype> types_;
};

}  // namespace railpass::internal
