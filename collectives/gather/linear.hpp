// SPDX-License-Identifier: BSL-1.0
//
// Linear: every rank sends its block to the root. p = 8: 1->0, 2->0, ..., 7->0.
//
// Cost: alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: blocks are long (each byte travels once). Poor when: p messages at once are too many
// for the root. Needs: nothing.
// Source: MPI Forum: MPI: A Message-Passing Interface Standard 4.0, 2021, section 6.5, which
// defines the call so.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gather, linear)
#elif !defined(RAILPASS_COLLECTIVES_GATHER_LINEAR)
#define RAILPASS_COLLECTIVES_GATHER_LINEAR

#include "collectives/parts.hpp"

namespace railpass::collectives::gather {

inline schedule build_linear(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, v = s.rank;
  const block_range own{.parts = p, .first = v};
  if (v != 0) {
    b.send(buffer::input, own, 0);
    return b.finish();
  }
  b.receive(buffer::output, {.parts = p, .first = 1, .stride = 1}, 1, {},
            {.rounds = p - 1, .peer_stride = 1});
  b.copy(buffer::input, buffer::output, own);
  return b.finish();
}

inline double cost_linear(const cost_query& q, const parameters&) {
  const routes r(q, q.bytes / q.num_ranks);
  const int from_near = r.per_node - 1, from_far = q.num_ranks - r.per_node;
  const double copy_s = q.machine.copy.time_s(q.bytes / q.num_ranks);
  const double receives_s = (from_near - 1) * r.near.receive_s + from_far * r.far.receive_s;
  if (from_far == 0)
    return r.near.one_way_s + std::max((from_near - 1) * r.near.busy_s, receives_s + copy_s);
  return r.far.one_way_s + std::max((from_far - 1) * r.far.busy_s, receives_s + copy_s);
}

inline constexpr algorithm linear{.op = collective::gather,
                                  .name = "linear",
                                  .source = "MPI 4.0, section 6.5, as the call is defined",
                                  .needs = {},
                                  .build = build_linear,
                                  .cost_s = cost_linear};

}  // namespace railpass::collectives::gather

#endif
