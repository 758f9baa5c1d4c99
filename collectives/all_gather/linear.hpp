// SPDX-License-Identifier: BSL-1.0
//
// Linear: every rank sends its block to every other one, beginning with its right neighbour.
// p = 8: r -> r+1, r+2, ..., r+7.
//
// Cost: alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: blocks are short and the network takes p messages at once. Poor when: it does not.
// Needs: nothing.
// Source: MPI Forum: MPI: A Message-Passing Interface Standard 4.0, 2021, section 6.7, which
// defines the call so.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, linear)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_LINEAR)
#define RAILPASS_COLLECTIVES_ALL_GATHER_LINEAR

#include "collectives/parts.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_linear(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const block_range own{.parts = p, .first = r};
  b.receive(buffer::output, {.parts = p, .first = left, .stride = -1}, left, {},
            {.rounds = p - 1, .peer_stride = -1});
  b.send(buffer::input, own, right, {}, {.rounds = p - 1, .peer_stride = 1});
  b.copy(buffer::input, buffer::output, own);
  return b.finish();
}

inline double cost_linear(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  const double others = q.num_ranks - 1;
  const double to_far = q.num_ranks - r.per_node;
  const hop& h = to_far > 0 ? r.far : r.near;
  const double messages = to_far > 0 ? r.per_node * to_far : others;
  return std::max((messages - 1) * h.busy_s, (others - 1) * h.crowded_stage_s()) + h.one_way_s +
         q.machine.copy.time_s(block);
}

inline constexpr algorithm linear{.op = collective::all_gather,
                                  .name = "linear",
                                  .source = "MPI 4.0, section 6.7, as the call is defined",
                                  .needs = {},
                                  .build = build_linear,
                                  .cost_s = cost_linear};

}  // namespace railpass::collectives::all_gather

#endif
