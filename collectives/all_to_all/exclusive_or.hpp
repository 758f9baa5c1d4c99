// SPDX-License-Identifier: BSL-1.0
//
// Exclusive or: in round i rank r exchanges blocks with rank r xor i; a round begins when the
// one before has been received. The partners of the first rounds are near, and all ranks of a
// node are done with one another before they turn to another node. p = 4: 0-1 2-3, 0-2 1-3, 0-3
// 1-2.
//
// Cost: (p-1) (alpha + m beta), m the bytes of a block.
// Good when: blocks are long, on hypercubes and trees of links. Poor when: blocks are short.
// Needs: a power of two of ranks.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, exclusive_or)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_EXCLUSIVE_OR)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_EXCLUSIVE_OR

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_to_all {

inline schedule build_exclusive_or(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  b.copy(buffer::input, buffer::output, {.parts = p, .first = r});
  step_id before = no_step;
  for (int i = 1; i < p; ++i) {
    const block_range theirs{.parts = p, .first = r ^ i};
    b.send(buffer::input, theirs, r ^ i, {whole(before)});
    before = b.receive(buffer::output, theirs, r ^ i, {whole(before)});
  }
  return b.finish();
}

inline double cost_exclusive_or(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  double total_s = q.machine.copy.time_s(block);
  for (int i = 1; i < q.num_ranks; ++i) total_s += r.exchange_s(i);
  return total_s;
}

inline constexpr algorithm exclusive_or{
    .op = collective::all_to_all,
    .name = "exclusive_or",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .needs = {.power_of_two = true, .max_ranks = 256},
    .build = build_exclusive_or,
    .cost_s = cost_exclusive_or};

}  // namespace railpass::collectives::all_to_all

#endif
