// SPDX-License-Identifier: BSL-1.0
//
// Bine tree: a rank collects the blocks of its subtree, a range of ranks, and sends them to its
// parent in one message. p = 8: 1->0 6->7 2->3 5->4 one block, then 7->0 4->3 two, then 3->0 four.
//
// Cost: ceil(log2 p) alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: blocks are short, and leaving a group of neighbours is dear. Poor when: they are long
// (a block travels up to log2 p times).
// Needs: nothing.
// Source: De Sensi et al.: Bine trees: enhancing collective operations by optimizing communication
// locality, SC 2025, doi:10.1145/3712285.3759835.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gather, bine)
#elif !defined(RAILPASS_COLLECTIVES_GATHER_BINE)
#define RAILPASS_COLLECTIVES_GATHER_BINE

#include "collectives/bine.hpp"

namespace railpass::collectives::gather {

inline schedule build_bine(const shape& s, const parameters&) {
  builder b(s);
  const bine_position position = bine_tree(s.rank, s.num_ranks);
  const auto& [parent, children] = position.tree;
  const block_range own{.parts = s.num_ranks, .first = s.rank};
  if (children.empty()) {
    b.send(buffer::input, own, parent);
    return b.finish();
  }
  const buffer collected = parent < 0 ? buffer::output : buffer::scratch0;
  std::vector<after> here;
  for (std::size_t k = 0; k < children.size(); ++k)
    here.push_back(whole(b.receive(collected, position.below[k], children[k])));
  here.push_back(whole(b.copy(buffer::input, collected, own)));
  if (parent >= 0) b.send(collected, position.own, parent, here);
  return b.finish();
}

inline double cost_bine(const cost_query& q, const parameters&) {
  return bine_scatter_s(q) + q.machine.copy.time_s(q.bytes / q.num_ranks);
}

inline constexpr algorithm bine{.op = collective::gather,
                                .name = "bine",
                                .source = bine_source,
                                .needs = {},
                                .scratch = {.messages = 0.5},
                                .spans_blocks = true,
                                .build = build_bine,
                                .cost_s = cost_bine};

}  // namespace railpass::collectives::gather

#endif
