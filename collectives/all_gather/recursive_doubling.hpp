// SPDX-License-Identifier: BSL-1.0
//
// Recursive doubling: in round i each rank exchanges all blocks it has with the rank whose
// number differs in bit i. p = 8: 0-1 2-3 4-5 6-7 one block, 0-2 1-3 4-6 5-7 two, 0-4 1-5 2-6
// 3-7 four.
//
// Cost: log2 p alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: always, on links that are all alike. Poor when: p is not a power of two, or the
// ranks far away are behind slow links.
// Needs: a power of two of ranks.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_ALL_GATHER_RECURSIVE_DOUBLING

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_recursive_doubling(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const block_range own{.parts = p, .first = r};
  std::vector<after> held{whole(b.copy(buffer::input, buffer::output, own))};
  for (int bit = 1; bit < p; bit *= 2) {
    const int peer = r ^ bit;
    const block_range mine{.parts = p, .first = r & -bit, .count = bit};
    const block_range theirs{.parts = p, .first = peer & -bit, .count = bit};
    if (bit == 1)
      b.send(buffer::input, own, peer);
    else
      b.send(buffer::output, mine, peer, held);
    held.push_back(whole(b.receive(buffer::output, theirs, peer)));
  }
  return b.finish();
}

inline double cost_recursive_doubling(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  double total_s = q.machine.copy.time_s(block);
  for (int bit = 1; bit < q.num_ranks; bit *= 2) total_s += routes(q, bit * block).exchange_s(bit);
  return total_s;
}

inline constexpr algorithm recursive_doubling{
    .op = collective::all_gather,
    .name = "recursive_doubling",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .needs = {.power_of_two = true},
    .spans_blocks = true,
    .build = build_recursive_doubling,
    .cost_s = cost_recursive_doubling};

}  // namespace railpass::collectives::all_gather

#endif
