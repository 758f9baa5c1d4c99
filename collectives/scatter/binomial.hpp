// SPDX-License-Identifier: BSL-1.0
//
// Binomial tree: a rank is sent the blocks of its subtree, a range of ranks, and passes its
// children theirs. p = 8: 0->4 four blocks, then 0->2 4->6 two, then 0->1 2->3 4->5 6->7 one.
//
// Cost: ceil(log2 p) alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: blocks are short. Poor when: they are long (a block travels up to log2 p times).
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatter, binomial)
#elif !defined(RAILPASS_COLLECTIVES_SCATTER_BINOMIAL)
#define RAILPASS_COLLECTIVES_SCATTER_BINOMIAL

#include "collectives/trees.hpp"

namespace railpass::collectives::scatter {

inline schedule build_binomial(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, v = s.rank;
  const auto [parent, children] = binomial_tree(v, p);
  const auto subtree = [&](int rank) {
    return block_range{.parts = p, .first = rank, .count = scattered_blocks(rank, p)};
  };
  const block_range own{.parts = p, .first = v};
  if (children.empty()) {
    b.receive(buffer::output, own, parent);
    return b.finish();
  }
  const buffer at = parent < 0 ? buffer::input : buffer::scratch0;
  const step_id arrived = parent < 0 ? no_step : b.receive(at, subtree(v), parent);
  for (auto child = children.rbegin(); child != children.rend(); ++child)
    b.send(at, subtree(*child), *child, {whole(arrived)});
  b.copy(at, buffer::output, own, {whole(arrived)});
  return b.finish();
}

inline double cost_binomial(const cost_query& q, const parameters&) {
  return binomial_scatter_s(q);
}

inline constexpr algorithm binomial{.op = collective::scatter,
                                    .name = "binomial",
                                    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                    .needs = {},
                                    .scratch = {.messages = 0.5},
                                    .spans_blocks = true,
                                    .build = build_binomial,
                                    .cost_s = cost_binomial};

}  // namespace railpass::collectives::scatter

#endif
