// SPDX-License-Identifier: BSL-1.0
//
// Single copies, flat: the root's memory is read by all others, or it writes to theirs. p = 4: 1,
// 2, 3 get from 0; or 0 puts to 1, 2, 3.
//
// Cost: a system call and one copy of the message for each other rank, which follow one another in
// the root's memory, whoever makes them.
// Good when: messages are long and ranks few. Poor when: many read one process' memory, which the
// kernel serialises.
// Needs: processes that may copy from each other's memory; at most 4 ranks.
// Source: Ma, Bosilca, Bouteiller, Dongarra: Kernel-assisted and topology-aware MPI collective
// communications on multicore/many-core platforms, JPDC 73 (2013), doi:10.1016/j.jpdc.2013.01.015.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_BROADCAST_SINGLE_COPY

#include "collectives/single_copy.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_single_copy(const shape& s, const parameters& values) {
  if (s.rank != 0) return hand_over(s, values, buffer::output, {}, {{0, {}}});
  std::vector<handover> gives;
  for (int k = 1; k < s.num_ranks; ++k) gives.push_back({k, {}});
  return hand_over(s, values, buffer::output, gives, {});
}

inline double cost_single_copy(const cost_query& q, const parameters& values) {
  return rooted_hand_over_s(q, values[0] != 0, q.bytes);
}

inline constexpr algorithm single_copy{.op = collective::broadcast,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = few_single_copies_needs,
                                       .parameter_list = {giver_writes_parameter},
                                       .build = build_single_copy,
                                       .cost_s = cost_single_copy};

}  // namespace railpass::collectives::broadcast

#endif
