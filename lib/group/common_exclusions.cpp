// SPDX-License-Identifier: BSL-1.0
#include "lib/group/common_exclusions.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace railpass::internal {

least_of_ranks least_over(MPI_Comm comm) {
  return [comm](std::uint64_t& word) {
    return PMPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT64_T, MPI_MIN, comm);
  };
}

// All tables are in the same order, so each round finds the first exclusion that is left on any
// rank, word by word. The words have at most 63 bits: MPICH 4.0 compares unsigned numbers of 64
// bits as signed ones.
int unite(select::exclusions& table, const least_of_ranks& least) {
  constexpr std::uint64_t nothing = std::numeric_limits<std::int64_t>::max();
  select::exclusions all;
  for (std::span<const select::exclusion_words> left = table.all();;) {
    select::exclusion_words mine{nothing, nothing, nothing};
    if (!left.empty()) mine = left.front();
    select::exclusion_words first = mine;
    bool is_mine = true;
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (!is_mine) first[i] = nothing;
      if (const int failure = least(first[i])) return failure;
      is_mine = is_mine && first[i] == mine[i];
    }
    if (first[0] == nothing) break;
    all.add(select::exclusion_of(first));
    if (is_mine) left = left.subspan(1);
  }
  table = all;
  return MPI_SUCCESS;
}

int ask_for_native(const select::exclusions& table, MPI_Comm comm, bool& any_excludes) {
  int excludes = table.has_native() ? 1 : 0;
  const int failure = PMPI_Allreduce(MPI_IN_PLACE, &excludes, 1, MPI_INT, MPI_MAX, comm);
  any_excludes = excludes != 0;
  return failure;
}

}  // namespace railpass::internal
