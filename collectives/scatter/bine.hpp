// SPDX-License-Identifier: BSL-1.0
//
// Bine tree: a rank is sent the blocks of its subtree, a range of ranks, and passes its children
// theirs. p = 8: 0->3 four blocks, then 0->7 3->4 two, then 0->1 7->6 3->2 4->5 one.
//
// Cost: ceil(log2 p) alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: blocks are short, and leaving a group of neighbours is dear. Poor when: they are long
// (a block travels up to log2 p times).
// Needs: nothing.
// Source: De Sensi et al.: Bine trees: enhancing collective operations by optimizing communication
// locality, SC 2025, doi:10.1145/3712285.3759835.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatter, bine)
#elif !defined(RAILPASS_COLLECTIVES_SCATTER_BINE)
#define RAILPASS_COLLECTIVES_SCATTER_BINE

#include "collectives/bine.hpp"

namespace railpass::collectives::scatter {

inline schedule build_bine(const shape& s, const parameters&) {
  builder b(s);
  const bine_position position = bine_tree(s.rank, s.num_ranks);
  const auto& [parent, children] = position.tree;
  const block_range own{.parts = s.num_ranks, .first = s.rank};
  if (children.empty()) {
    b.receive(buffer::output, own, parent);
    return b.finish();
  }
  const buffer at = parent < 0 ? buffer::input : buffer::scratch0;
  const step_id arrived = parent < 0 ? no_step : b.receive(at, position.own, parent);
  for (std::size_t k = children.size(); k-- > 0;)
    b.send(at, position.below[k], children[k], {whole(arrived)});
  b.copy(at, buffer::output, own, {whole(arrived)});
  return b.finish();
}

inline double cost_bine(const cost_query& q, const parameters&) { return bine_scatter_s(q); }

inline constexpr algorithm bine{.op = collective::scatter,
                                .name = "bine",
                                .source = bine_source,
                                .needs = {},
                                .scratch = {.messages = 0.5},
                                .spans_blocks = true,
                                .build = build_bine,
                                .cost_s = cost_bine};

}  // namespace railpass::collectives::scatter

#endif
