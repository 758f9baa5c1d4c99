// SPDX-License-Identifier: BSL-1.0
//
// 1-factors: in round i ranks whose numbers add up to i modulo p exchange blocks, so that each
// has one partner at a time, for any number of ranks; the rank that would be its own partner
// waits. A round begins when the one before has been received. p = 8, round 1: 0-1 2-7 3-6 4-5.
//
// Cost: (p-1) (alpha + m beta), m the bytes of a block.
// Good when: blocks are long and links work better both ways with one peer. Poor when: blocks
// are short.
// Needs: nothing.
// Source: Sanders, Traeff: The hierarchical factor algorithm for all-to-all communication,
// Euro-Par 2002, doi:10.1007/3-540-45706-2_112.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, factor)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_FACTOR)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_FACTOR

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_to_all {

inline schedule build_factor(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank, alone = wrap(2 * std::int64_t{r}, p);
  b.copy(buffer::input, buffer::output, {.parts = p, .first = r});
  step_id before = no_step;
  const auto rounds = [&](int begin, int end) {
    const int partner = wrap(begin - r, p);
    const block_range theirs{.parts = p, .first = partner, .stride = 1};
    const loop one_at_a_time{.rounds = end - begin, .peer_stride = 1, .window = 1};
    const step_id arrived =
        b.receive(buffer::output, theirs, partner, {whole(before)}, one_at_a_time);
    b.send(buffer::input, theirs, partner, {whole(before), each(arrived, 1)}, one_at_a_time);
    before = arrived;
  };
  rounds(0, alone);
  rounds(alone + 1, p);
  return b.finish();
}

inline double cost_factor(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  // Ranks of one node have partners all over; who is alone in a round makes others wait in the
  // next.
  const double rounds = q.num_ranks == 2 ? 1 : q.num_ranks - 0.5;
  const double together = q.num_ranks > r.per_node
                              ? r.per_node * double(q.num_ranks - r.per_node) / (q.num_ranks - 1)
                              : 0;
  return rounds * burst_s(r, 1, together) + q.machine.copy.time_s(block);
}

inline constexpr algorithm factor{
    .op = collective::all_to_all,
    .name = "factor",
    .source = "Sanders and Traeff 2002, doi:10.1007/3-540-45706-2_112",
    .needs = {},
    .build = build_factor,
    .cost_s = cost_factor};

}  // namespace railpass::collectives::all_to_all

#endif
