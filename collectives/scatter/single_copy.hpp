// SPDX-License-Identifier: BSL-1.0
//
// Single copies, flat: each other rank reads its block in the root's memory, or the root writes it
// there. p = 8: 1 to 7 get from 0; or 0 puts to each.
//
// Cost: a system call and one copy of a block for each other rank, which follow one another in the
// root's memory, whoever makes them.
// Good when: blocks are long. Poor when: they are short, or ranks are many.
// Needs: processes that may copy from each other's memory; at most 64 ranks.
// Source: Ma, Bosilca, Bouteiller, Dongarra: Kernel-assisted and topology-aware MPI collective
// communications on multicore/many-core platforms, JPDC 73 (2013), doi:10.1016/j.jpdc.2013.01.015.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatter, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_SCATTER_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_SCATTER_SINGLE_COPY

#include "collectives/single_copy.hpp"

namespace railpass::collectives::scatter {

inline schedule build_single_copy(const shape& s, const parameters& values) {
  const int p = s.num_ranks;
  if (s.rank != 0) return hand_over(s, values, buffer::input, {}, {{0, block_of(s.rank, p)}});
  std::vector<handover> gives;
  for (int k = 1; k < p; ++k) gives.push_back({k, block_of(k, p)});
  return hand_over(s, values, buffer::input, gives, {}, {block_of(0, p)});
}

inline double cost_single_copy(const cost_query& q, const parameters& values) {
  return rooted_hand_over_s(q, values[0] != 0, q.bytes / q.num_ranks);
}

inline constexpr algorithm single_copy{.op = collective::scatter,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = single_copy_needs,
                                       .parameter_list = {giver_writes_parameter},
                                       .build = build_single_copy,
                                       .cost_s = cost_single_copy};

}  // namespace railpass::collectives::scatter

#endif
