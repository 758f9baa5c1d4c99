// SPDX-License-Identifier: BSL-1.0
//
// Bine butterfly: the message is cut in p blocks, and every rank sums up one of them, by exchanges
// of fewer and fewer blocks with partners that come nearer; then the sums are gathered by the same
// exchanges in reverse. p = 8: 0-3 1-6 2-5 4-7 with 1/2 of the message, 0-7 1-2 3-4 5-6 with 1/4,
// 0-1 2-3 4-5 6-7 with 1/8, and back. If p is odd, the last rank first hands its data to the rank
// before, and gets the result from it at the end.
//
// Cost: 2 ceil(log2 p) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma, plus 2 (alpha + n beta) +
// n gamma if p is odd.
// Good when: n beta dominates, p is even, and leaving a group of neighbours is dear.
// Poor when: messages are very short, or p is odd.
// Needs: a commutative operation.
// Source: De Sensi et al.: Bine trees: enhancing collective operations by optimizing communication
// locality, SC 2025, doi:10.1145/3712285.3759835.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, bine)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_BINE)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_BINE

#include "collectives/bine.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_bine(const shape& s, const parameters&) {
  builder b(s);
  const bine_butterfly butterfly(s.num_ranks);
  if (butterfly.stands_aside(s.rank)) {
    const step_id handed = b.send(buffer::input, {}, s.rank - 1);
    b.receive(buffer::output, {}, s.rank - 1, {whole(handed)});
    return b.finish();
  }
  // The output may be the input's memory.
  const bine_sum sum = bine_reduce_scatter(b, s);
  std::vector<after> free = sum.input_read;
  free.insert(free.end(), sum.ready.begin(), sum.ready.end());
  std::vector<after> held;
  for (const block_range& blocks : butterfly.blocks(s.rank, 1))
    held.push_back(whole(b.copy(buffer::scratch0, buffer::output, blocks, free)));
  bine_all_gather(b, s, std::move(held), free);
  return b.finish();
}

inline double cost_bine(const cost_query& q, const parameters&) {
  return q.machine.copy.time_s(q.bytes / q.num_ranks) + bine_rounds_s(q, 1) + bine_rounds_s(q, 0) +
         bine_aside_s(q, q.bytes, 1) + bine_aside_s(q, q.bytes);
}

inline constexpr algorithm bine{.op = collective::all_reduce,
                                .name = "bine",
                                .source = bine_source,
                                .needs = {.commutative = true},
                                .scratch = {.messages = 2},
                                .build = build_bine,
                                .cost_s = cost_bine};

}  // namespace railpass::collectives::all_reduce

#endif
