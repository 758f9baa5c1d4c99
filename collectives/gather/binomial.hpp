// SPDX-License-Identifier: BSL-1.0
//
// Binomial tree: a rank collects the blocks of its subtree, a range of ranks, and sends them to its
// parent in one message. p = 8: 1->0 3->2 5->4 7->6 one block, then 2->0 6->4 two, then 4->0 four.
//
// Cost: ceil(log2 p) alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: blocks are short. Poor when: they are long (a block travels up to log2 p times).
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gather, binomial)
#elif !defined(RAILPASS_COLLECTIVES_GATHER_BINOMIAL)
#define RAILPASS_COLLECTIVES_GATHER_BINOMIAL

#include "collectives/trees.hpp"

namespace railpass::collectives::gather {

inline schedule build_binomial(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, v = s.rank;
  const auto [parent, children] = binomial_tree(v, p);
  const auto subtree = [&](int rank) {
    return block_range{.parts = p, .first = rank, .count = scattered_blocks(rank, p)};
  };
  const block_range own{.parts = p, .first = v};
  if (children.empty()) {
    b.send(buffer::input, own, parent);
    return b.finish();
  }
  const buffer collected = parent < 0 ? buffer::output : buffer::scratch0;
  std::vector<after> here;
  for (const int child : children)
    here.push_back(whole(b.receive(collected, subtree(child), child)));
  here.push_back(whole(b.copy(buffer::input, collected, own)));
  if (parent >= 0) b.send(collected, subtree(v), parent, here);
  return b.finish();
}

inline double cost_binomial(const cost_query& q, const parameters&) {
  return binomial_scatter_s(q) + q.machine.copy.time_s(q.bytes / q.num_ranks);
}

inline constexpr algorithm binomial{.op = collective::gather,
                                    .name = "binomial",
                                    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                    .needs = {},
                                    .scratch = {.messages = 0.5},
                                    .spans_blocks = true,
                                    .build = build_binomial,
                                    .cost_s = cost_binomial};

}  // namespace railpass::collectives::gather

#endif
