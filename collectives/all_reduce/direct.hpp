// SPDX-License-Identifier: BSL-1.0
//
// Direct reduce-scatter and all-gather: every rank sends each other one that rank's block, adds up
// its own block, and sends it to all. p = 8: r -> s with block s of r, for all r and s; then r -> s
// with the complete block r.
//
// The contributions pass through three buffers that take turns, in descending rank order; a step
// for each makes the schedule grow with the ranks.
//
// Cost: 2 alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
// Good when: every pair of ranks has a way of its own: two hops, and links no fuller than a ring's.
// Poor when: messages are short against p starts of messages, or many ranks share a link.
// Needs: at most 256 ranks; rank order is kept.
// Source: Chan, Heimlich, Purkayastha, van de Geijn: Collective communication: theory, practice,
// and experience, CCPE 19(13), 2007, doi:10.1002/cpe.1206; the reduce-scatter: Iannello: Efficient
// algorithms for the reduce-scatter operation in LogGP, IEEE TPDS 8(9), 1997,
// doi:10.1109/71.615442.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, direct)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_DIRECT)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_DIRECT

#include "collectives/parts.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_direct(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  if (p == 1) return b.finish();
  const block_range mine{.parts = p, .first = r};
  const block_range others{.parts = p, .first = wrap(r + 1, p), .stride = 1};
  const loop to_all{.rounds = p - 1, .peer_stride = 1};
  const step_id given = b.send(buffer::input, others, wrap(r + 1, p), {}, to_all);
  // sum = contribution op sum, in descending rank order, so that the operands are in rank order.
  const buffer sum_at = buffer::scratch0;
  step_id sum = r == p - 1 ? b.copy(buffer::input, sum_at, mine) : b.receive(sum_at, mine, p - 1);
  std::array arrivals{buffer::scratch1, buffer::scratch2, buffer::scratch3};
  std::array<step_id, 3> used{no_step, no_step, no_step};
  std::size_t turn = 0;
  for (int from = p - 2; from >= 0; --from) {
    if (from == r) {
      sum = b.reduce(buffer::input, sum_at, mine, {whole(sum)});
      continue;
    }
    const step_id part = b.receive(arrivals[turn], mine, from, {whole(used[turn])});
    sum = b.reduce(arrivals[turn], sum_at, mine, {whole(part), whole(sum)});
    used[turn] = sum;
    turn = (turn + 1) % arrivals.size();
  }
  b.send(sum_at, {.parts = p, .first = r}, wrap(r + 1, p), {whole(sum)}, to_all);
  b.copy(sum_at, buffer::output, mine, {whole(sum)});
  // In an in-place call a complete block overwrites the one that was given to its rank.
  b.receive(buffer::output, {.parts = p, .first = wrap(r - 1, p), .stride = -1}, wrap(r - 1, p),
            {whole(given)}, {.rounds = p - 1, .peer_stride = -1});
  return b.finish();
}

inline double cost_direct(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  const double others = q.num_ranks - 1, reduce_s = q.machine.reduce.time_s(block);
  const double to_far = q.num_ranks - r.per_node;
  // Twice: all messages of a rank over its link, or all messages of a node to other nodes.
  const double phase_s = std::max((others - 1) * r.far.crowded_stage_s(reduce_s),
                                  r.per_node > 1 ? (r.per_node * to_far - 1) * r.far.busy_s : 0) +
                         r.far.one_way_s;
  // Messages that wait for their receiver also wait for one of four buffers.
  const double buffers_s = others > 4 && block > q.slowest_link().eager_limit_bytes ? phase_s : 0;
  return 2 * phase_s + buffers_s + 2 * reduce_s;
}

inline constexpr algorithm direct{
    .op = collective::all_reduce,
    .name = "direct",
    .source = "Chan et al. 2007, doi:10.1002/cpe.1206; Iannello 1997, doi:10.1109/71.615442",
    .needs = {.max_ranks = 256},
    .scratch = {.messages = 0, .blocks = 4},
    .build = build_direct,
    .cost_s = cost_direct};

}  // namespace railpass::collectives::all_reduce

#endif
