// SPDX-License-Identifier: BSL-1.0
//
// All-gather and local reduction: every rank sends its input to every other one and reduces all
// contributions itself, from the last rank's to the first's.
// p = 8: one round, r -> r+1, r+2, ..., r+7.
//
// The contributions are not kept side by side: they pass through three buffers that take turns.
// Rank order makes every one a step of its own, so the schedule grows with the ranks, 42 KB for
// 256; beyond that the algorithm is hopeless anyhow.
//
// Cost: alpha + (p-1) n beta + (p-1) n gamma.
// Good when: messages are a few bytes and ranks are few (one hop). Poor otherwise.
// Needs: at most 256 ranks; rank order is kept.
// Source: Traeff, Gropp, Thakur: Self-consistent MPI performance guidelines, TPDS 21(5), 2010,
// doi:10.1109/TPDS.2009.120.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, allgather_reduce)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_ALLGATHER_REDUCE)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_ALLGATHER_REDUCE

#include "collectives/parts.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_allgather_reduce(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const step_id sent =
      b.send(buffer::input, {}, wrap(r + 1, p), {}, {.rounds = p - 1, .peer_stride = 1});
  // sum = contribution op sum, in descending rank order, so that the operands are in rank order.
  const buffer sum_at = buffer::scratch0;
  step_id sum = r == p - 1 ? b.copy(buffer::input, sum_at, {}) : b.receive(sum_at, {}, p - 1);
  std::array arrivals{buffer::scratch1, buffer::scratch2, buffer::scratch3};
  std::array<step_id, 3> used{no_step, no_step, no_step};
  std::size_t turn = 0;
  for (int from = p - 2; from >= 0; --from) {
    if (from == r) {
      sum = b.reduce(buffer::input, sum_at, {}, {whole(sum)});
      continue;
    }
    const step_id part = b.receive(arrivals[turn], {}, from, {whole(used[turn])});
    sum = b.reduce(arrivals[turn], sum_at, {}, {whole(part), whole(sum)});
    used[turn] = sum;
    turn = (turn + 1) % arrivals.size();
  }
  // In an in-place call the output is what is being sent.
  b.copy(sum_at, buffer::output, {}, {whole(sum), whole(sent)});
  return b.finish();
}

inline double cost_allgather_reduce(const cost_query& q, const parameters&) {
  const routes r(q, q.bytes);
  const double others = q.num_ranks - 1, reduce_s = q.machine.reduce.time_s(q.bytes);
  // Messages on the busiest link: a rank's, or those from a node to all ranks of other nodes.
  const double to_far = q.num_ranks - r.per_node;
  const hop& h = to_far > 0 ? r.far : r.near;
  const double messages = to_far > 0 ? r.per_node * to_far : others;
  // The last contribution arrives when the link has carried the earlier contributions and the rank
  // has reduced them, or when the CPU has processed all of them. Messages that wait for their
  // receiver also wait for a buffer, one rank after the other, and each meets an incoming message.
  const double link_s = (messages - 1) * h.busy_s + others * reduce_s;
  const double processor_s = (others - 1) * h.crowded_stage_s() + others * reduce_s;
  const double buffers_s =
      q.bytes > q.slowest_link().eager_limit_bytes
          ? std::max((2 * messages - 5) * h.busy_s, (messages - 1) * h.exchange_s) + reduce_s
          : 0;
  return std::max({link_s, processor_s, buffers_s}) + h.one_way_s + q.machine.copy.time_s(q.bytes);
}

inline constexpr algorithm allgather_reduce{
    .op = collective::all_reduce,
    .name = "allgather_reduce",
    .source = "Traeff et al. 2010, doi:10.1109/TPDS.2009.120",
    .needs = {.max_ranks = 256},
    .scratch = {.messages = 4},
    .build = build_allgather_reduce,
    .cost_s = cost_allgather_reduce};

}  // namespace railpass::collectives::all_reduce

#endif
