// SPDX-License-Identifier: BSL-1.0
#include "lib/call/neighbors.hpp"

#include "lib/call/arguments.hpp"
#include "lib/exec/binding.hpp"

#include <algorithm>

namespace railpass::internal {

namespace {

constexpr int words_per_edge = 2;

// In a grid sources and destinations are the same: in each dimension down, then up.
std::vector<int> neighbors_in_grid(MPI_Comm comm) {
  int num_dimensions = 0;
  PMPI_Cartdim_get(comm, &num_dimensions);
  std::vector<int> result(2 * std::size_t(num_dimensions), MPI_PROC_NULL);
  for (int d = 0; d < num_dimensions; ++d)
    PMPI_Cart_shift(comm, d, 1, &result[2 * std::size_t(d)], &result[2 * std::size_t(d) + 1]);
  return result;
}

std::vector<int> neighbors_in_graph(MPI_Comm comm) {
  int rank = 0, degree = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Graph_neighbors_count(comm, rank, &degree);
  std::vector<int> result(std::size_t(degree), MPI_PROC_NULL);
  PMPI_Graph_neighbors(comm, rank, degree, result.data());
  return result;
}

}  // namespace

bool has_topology(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &kind);
  return kind == MPI_CART || kind == MPI_GRAPH || kind == MPI_DIST_GRAPH;
}

neighbors neighbors::of(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &kind);
  if (kind != MPI_DIST_GRAPH) {
    std::vector<int> both = kind == MPI_CART ? neighbors_in_grid(comm) : neighbors_in_graph(comm);
    return {both, both};
  }
  int num_sources = 0, num_destinations = 0, is_weighted = 0;
  PMPI_Dist_graph_neighbors_count(comm, &num_sources, &num_destinations, &is_weighted);
  neighbors result{std::vector<int>(std::size_t(num_sources), MPI_PROC_NULL),
                   std::vector<int>(std::size_t(num_destinations), MPI_PROC_NULL)};
  std::vector<int> weights(result.sources.size() + result.destinations.size());
  PMPI_Dist_graph_neighbors(comm, num_sources, result.sources.data(), weights.data(),
                            num_destinations, result.destinations.data(),
                            weights.data() + num_sources);
  return result;
}

neighbor_blocks::neighbor_blocks(const call_side& of, bool is_one) : of_(of) {
  if (of.types) {
    stride_bytes_ = 1;
  } else if (!is_one && of.type != MPI_DATATYPE_NULL) {
    MPI_Count lower = 0, extent = 0;
    PMPI_Type_get_extent_x(of.type, &lower, &extent);
    stride_bytes_ = of.counts ? extent : of.count * extent;
  }
}

// A block without elements may have no datatype.
neighbor_block neighbor_blocks::operator[](int i) const {
  const std::int64_t count = of_.counts ? of_.counts[i] : of_.count;
  const std::int64_t displacement = of_.displacements ? of_.displacements[i] : i;
  return {displaced(static_cast<const std::byte*>(of_.memory), displacement * stride_bytes_), count,
          count == 0  ? MPI_BYTE
          : of_.types ? of_.types[i]
                      : of_.type};
}

edge_question::edge_question(const neighbors& around, neighbor_function f)
    : around_(around),
      f_(f),
      sent_(words_per_edge * (around.destinations.size() + 1)),
      received_(words_per_edge * (around.sources.size() + 1)) {
  // One more, as MPI libraries refuse null pointers, also to nothing.
  const std::size_t most = 1 + std::max(around.sources.size(), around.destinations.size());
  counts_.assign(most, words_per_edge);
  types_.assign(most, MPI_INT32_T);
  for (std::size_t i = 0; i < most; ++i) {
    displacements_.push_back(words_per_edge * int(i));
    displacements_bytes_.push_back(MPI_Aint(sizeof(std::int32_t)) * words_per_edge * MPI_Aint(i));
  }
}

bool edge_question::ask(MPI_Comm comm, bool nonblocking, std::span<std::int32_t> edges) {
  const std::size_t num_sources = around_.sources.size();
  for (std::size_t i = 0; i < num_sources; ++i) edges[i] = std::int32_t(i);
  // Where a rank sends the same along all edges it does not matter.
  if (f_ == neighbor_function::all_gather || f_ == neighbor_function::all_gatherv) return true;
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  for (std::size_t i = 0; i < around_.destinations.size(); ++i) {
    sent_[words_per_edge * i] = rank;
    sent_[words_per_edge * i + 1] = std::int32_t(i);
  }
  std::ranges::fill(received_, -1);
  std::int32_t* const out = received_.data();
  const neighbor_call c =
      f_ == neighbor_function::all_to_all
          ? arguments_of::neighbor_all_to_all(sent_.data(), words_per_edge, MPI_INT32_T, out,
                                              words_per_edge, MPI_INT32_T, comm)
      : f_ == neighbor_function::all_to_allv
          ? arguments_of::neighbor_all_to_allv(sent_.data(), counts_.data(), displacements_.data(),
                                               MPI_INT32_T, out, counts_.data(),
                                               displacements_.data(), MPI_INT32_T, comm)
          : arguments_of::neighbor_all_to_allw(
                sent_.data(), counts_.data(), displacements_bytes_.data(), types_.data(), out,
                counts_.data(), displacements_bytes_.data(), types_.data(), comm);
  if (nonblocking) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (start_native(c, &request) != MPI_SUCCESS ||
        PMPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return false;
  } else if (run_native(c) != MPI_SUCCESS) {
    return false;
  }
  for (std::size_t i = 0; i < num_sources; ++i) {
    if (around_.sources[i] == MPI_PROC_NULL) continue;
    if (received_[words_per_edge * i] != around_.sources[i]) return false;
    edges[i] = received_[words_per_edge * i + 1];
  }
  return true;
}

}  // namespace railpass::internal
