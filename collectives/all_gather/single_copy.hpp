// SPDX-License-Identifier: BSL-1.0
//
// Single copies, flat: every rank reads the block of each other one in its memory, or writes its
// own to theirs, the next rank's first. p = 8: 0 gets from 1, 2, ..., 7, and 1 from 2, 3, ..., 0.
//
// Cost: p - 1 system calls and one copy of the message on every rank.
// Good when: blocks are long. Poor when: they are short, or many ranks read one process' memory.
// Needs: processes that may copy from each other's memory; at most 64 ranks.
// Source: Ma, Bosilca, Bouteiller, Dongarra: Kernel-assisted and topology-aware MPI collective
// communications on multicore/many-core platforms, JPDC 73 (2013), doi:10.1016/j.jpdc.2013.01.015.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_ALL_GATHER_SINGLE_COPY

#include "collectives/single_copy.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_single_copy(const shape& s, const parameters& values) {
  const int p = s.num_ranks, r = s.rank;
  std::vector<handover> gives, takes;
  for (int k = 1; k < p; ++k) {
    const int peer = wrap(r + k, p);
    gives.push_back({peer, block_of(r, p)});
    takes.push_back({peer, block_of(peer, p)});
  }
  return hand_over(s, values, buffer::input, gives, takes, {block_of(r, p)});
}

inline constexpr algorithm single_copy{.op = collective::all_gather,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = single_copy_needs,
                                       .parameter_list = {giver_writes_parameter},
                                       .build = build_single_copy,
                                       .cost_s = all_hand_over_s};

}  // namespace railpass::collectives::all_gather

#endif
