// SPDX-License-Identifier: BSL-1.0
//
// Gather and broadcast: the blocks go up a binomial tree to rank 0, and all of them down it
// again, segment by segment. p = 8: 1->0 3->2 5->4 7->6 one block, 2->0 6->4 two, 4->0 four;
// then 0->4, 0->2 4->6, 0->1 2->3 4->5 6->7 all eight.
//
// Cost: 2 ceil(log2 p) alpha + (log2 p + (p-1)/p) n beta, n the bytes of all blocks.
// Good when: blocks are short, or the library's all_gather breaks this guideline. Poor when: n
// beta dominates.
// Needs: nothing.
// Source: Traeff, Gropp, Thakur: Self-consistent MPI performance guidelines, TPDS 21(5), 2010,
// doi:10.1109/TPDS.2009.120.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, gather_broadcast)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_GATHER_BROADCAST)
#define RAILPASS_COLLECTIVES_ALL_GATHER_GATHER_BROADCAST

#include "collectives/trees.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_gather_broadcast(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const int p = s.num_ranks, v = s.rank;
  const auto [parent, children] = binomial_tree(v, p);
  const auto subtree = [&](int rank) {
    return block_range{.parts = p, .first = rank, .count = scattered_blocks(rank, p)};
  };
  std::vector<after> held;
  if (!children.empty())
    held.push_back(whole(b.copy(buffer::input, buffer::output, {.parts = p, .first = v})));
  for (const int child : children)
    held.push_back(whole(b.receive(buffer::output, subtree(child), child)));
  if (parent >= 0) {
    const step_id handed =
        b.send(children.empty() ? buffer::input : buffer::output, subtree(v), parent, held);
    held = {each(b.receive(buffer::output, {}, parent, {whole(handed)}, by_segments))};
  }
  for (auto child = children.rbegin(); child != children.rend(); ++child)
    b.send(buffer::output, {}, *child, held, by_segments);
  return b.finish();
}

inline double cost_gather_broadcast(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  return binomial_scatter_s(q) + q.machine.copy.time_s(q.bytes / q.num_ranks) +
         knomial_depth_s(q.num_ranks, 2, r) + (st.segments - 1) * knomial_root_s(q.num_ranks, 2, r);
}

inline constexpr algorithm gather_broadcast{
    .op = collective::all_gather,
    .name = "gather_broadcast",
    .source = "Traeff et al. 2010, doi:10.1109/TPDS.2009.120",
    .needs = {},
    .parameter_list = {segment_bytes_parameter},
    .build = build_gather_broadcast,
    .cost_s = cost_gather_broadcast};

}  // namespace railpass::collectives::all_gather

#endif
