// SPDX-License-Identifier: BSL-1.0
//
// Pairwise exchange: in round i each rank sends a block to the rank i above it and receives one
// from the rank i below it; a round begins when the one before has been received. p = 8: seven
// rounds r -> r+i.
//
// Cost: (p-1) (alpha + m beta), m the bytes of a block.
// Good when: blocks are long and more than one message at once gets in each other's way. Poor when:
// they are short.
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, pairwise)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_PAIRWISE)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_PAIRWISE

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_to_all {

inline schedule build_pairwise(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const step_id arrived = b.receive(buffer::output, {.parts = p, .first = left, .stride = -1}, left,
                                    {}, {.rounds = p - 1, .peer_stride = -1, .window = 1});
  b.send(buffer::input, {.parts = p, .first = right, .stride = 1}, right, {each(arrived, 1)},
         {.rounds = p - 1, .peer_stride = 1, .window = 1});
  b.copy(buffer::input, buffer::output, {.parts = p, .first = r});
  return b.finish();
}

inline double cost_pairwise(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  double total_s = q.machine.copy.time_s(block);
  for (int distance = 1; distance < q.num_ranks; ++distance)
    total_s += burst_s(r, 1, leaving(q, std::min(distance, q.num_ranks - distance)));
  return total_s;
}

inline constexpr algorithm pairwise{.op = collective::all_to_all,
                                    .name = "pairwise",
                                    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                    .needs = {},
                                    .build = build_pairwise,
                                    .cost_s = cost_pairwise};

}  // namespace railpass::collectives::all_to_all

#endif
