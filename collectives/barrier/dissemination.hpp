// SPDX-License-Identifier: BSL-1.0
//
// Dissemination: in round i each rank sends to the rank 2^i above it that all ranks it has heard of
// have arrived. p = 8: r -> r+1, then r -> r+2, then r -> r+4.
//
// Cost: ceil(log2 p) alpha.
// Good when: only latency matters. Poor when: p simultaneous messages delay each other.
// Needs: nothing.
// Source: Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, IJPP 17(1), 1988,
// doi:10.1007/BF01379320.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, dissemination)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_DISSEMINATION)
#define RAILPASS_COLLECTIVES_BARRIER_DISSEMINATION

#include "collectives/parts.hpp"

namespace railpass::collectives::barrier {

inline schedule build_dissemination(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  std::vector<after> heard;
  for (int distance = 1; distance < p; distance *= 2) {
    const int from = wrap(r - distance, p);
    b.send(buffer::input, {.parts = p, .first = r}, wrap(r + distance, p), heard);
    heard.push_back(whole(b.receive(buffer::output, {.parts = p, .first = from}, from)));
  }
  return b.finish();
}

inline double cost_dissemination(const cost_query& q, const parameters&) {
  return dissemination_s(q.num_ranks, routes(q, 1));
}

inline constexpr algorithm dissemination{.op = collective::barrier,
                                         .name = "dissemination",
                                         .source = "Hensgen et al. 1988, doi:10.1007/BF01379320",
                                         .needs = {},
                                         .build = build_dissemination,
                                         .cost_s = cost_dissemination};

}  // namespace railpass::collectives::barrier

#endif
