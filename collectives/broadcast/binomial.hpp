// SPDX-License-Identifier: BSL-1.0
//
// Binomial tree: in every round each rank that has the message sends it to one that has not, so
// the number of ranks served doubles. p = 8: 0->4, then 0->2 4->6, then 0->1 2->3 4->5 6->7.
// With segments, the rounds of one segment overlap those of the next.
//
// Cost: ceil(log2 p) * (alpha + n beta) unsegmented; the root's link carries ceil(log2 p) * n.
// Good when: messages are short. Poor when: n beta dominates (the root sends everything log2 p
// times).
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations
// in MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, binomial)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_BINOMIAL)
#define RAILPASS_COLLECTIVES_BROADCAST_BINOMIAL

#include "collectives/parts.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_binomial(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const auto p = static_cast<std::uint32_t>(s.num_ranks);
  const auto v = static_cast<std::uint32_t>(s.rank);
  const std::uint32_t lowest = v == 0 ? std::bit_ceil(p) : v & (0u - v);  // parent: v - lowest bit
  const step_id arrived =
      v == 0 ? no_step : b.receive(buffer::output, {}, int(v - lowest), {}, by_segments);
  for (std::uint32_t bit = lowest >> 1; bit != 0; bit >>= 1)
    if (v + bit < p) b.send(buffer::output, {}, int(v + bit), {each(arrived)}, by_segments);
  return b.finish();
}

inline double cost_binomial(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  // The root's link carries every segment once per round.
  return knomial_depth_s(q.num_ranks, 2, r) + (st.segments - 1) * knomial_root_s(q.num_ranks, 2, r);
}

inline constexpr algorithm binomial{.op = collective::broadcast,
                                    .name = "binomial",
                                    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                    .needs = {},
                                    .parameter_list = {segment_bytes_parameter},
                                    .build = build_binomial,
                                    .cost_s = cost_binomial};

}  // namespace railpass::collectives::broadcast

#endif
