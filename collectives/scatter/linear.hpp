// SPDX-License-Identifier: BSL-1.0
//
// Linear: the root sends every rank its block. p = 8: 0->1, 0->2, ..., 0->7.
//
// Cost: alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: blocks are long (each byte travels once). Poor when: p alpha of the root is felt.
// Needs: nothing.
// Source: MPI Forum: MPI: A Message-Passing Interface Standard 4.0, 2021, section 6.6, which
// defines the call so.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatter, linear)
#elif !defined(RAILPASS_COLLECTIVES_SCATTER_LINEAR)
#define RAILPASS_COLLECTIVES_SCATTER_LINEAR

#include "collectives/parts.hpp"

namespace railpass::collectives::scatter {

inline schedule build_linear(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, v = s.rank;
  const block_range own{.parts = p, .first = v};
  if (v != 0) {
    b.receive(buffer::output, own, 0);
    return b.finish();
  }
  b.send(buffer::input, {.parts = p, .first = 1, .stride = 1}, 1, {},
         {.rounds = p - 1, .peer_stride = 1});
  b.copy(buffer::input, buffer::output, own);
  return b.finish();
}

inline double cost_linear(const cost_query& q, const parameters&) {
  const routes r(q, q.bytes / q.num_ranks);
  const int to_near = r.per_node - 1, to_far = q.num_ranks - r.per_node;
  if (to_far == 0) return (to_near - 1) * r.near.busy_s + r.near.one_way_s;
  return to_near * r.near.send_s + (to_far - 1) * r.far.busy_s + r.far.one_way_s;
}

inline constexpr algorithm linear{.op = collective::scatter,
                                  .name = "linear",
                                  .source = "MPI 4.0, section 6.6, as the call is defined",
                                  .needs = {},
                                  .build = build_linear,
                                  .cost_s = cost_linear};

}  // namespace railpass::collectives::scatter

#endif
