// SPDX-License-Identifier: BSL-1.0
//
// Bine butterfly: in every round two ranks exchange all blocks they have. A rank that is even goes
// up, down, up, ..., an odd one down, up, ..., so that a rank always has blocks of consecutive
// ranks. p = 8: 0-1 2-3 4-5 6-7 one block, 0-7 1-2 3-4 5-6 two, 0-3 1-6 2-5 4-7 four. If p is odd,
// the last rank first hands its block to the rank before, and gets all blocks from it at the end.
//
// Cost: ceil(log2 p) alpha + (p-1)/p n beta, n the bytes of all blocks; plus alpha + n beta if p is
// odd.
// Good when: p is even, and leaving a group of neighbours is dear. Poor when: p is odd.
// Needs: nothing.
// Source: De Sensi et al.: Bine trees: enhancing collective operations by optimizing communication
// locality, SC 2025, doi:10.1145/3712285.3759835.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, bine)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_BINE)
#define RAILPASS_COLLECTIVES_ALL_GATHER_BINE

#include "collectives/bine.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_bine(const shape& s, const parameters&) {
  builder b(s);
  const bine_butterfly butterfly(s.num_ranks);
  const block_range own{.parts = s.num_ranks, .first = s.rank};
  if (butterfly.stands_aside(s.rank)) {
    const step_id handed = b.send(buffer::input, own, s.rank - 1);
    b.receive(buffer::output, {}, s.rank - 1, {whole(handed)});
    return b.finish();
  }
  std::vector<after> held{whole(b.copy(buffer::input, buffer::output, own))};
  if (butterfly.stands_for_two(s.rank))
    held.push_back(
        whole(b.receive(buffer::output, {.parts = s.num_ranks, .first = s.rank + 1}, s.rank + 1)));
  bine_all_gather(b, s, std::move(held), {});
  return b.finish();
}

inline double cost_bine(const cost_query& q, const parameters&) {
  return q.machine.copy.time_s(q.bytes / q.num_ranks) + bine_rounds_s(q, 0) +
         bine_aside_s(q, q.bytes / q.num_ranks) + bine_aside_s(q, q.bytes);
}

inline constexpr algorithm bine{.op = collective::all_gather,
                                .name = "bine",
                                .source = bine_source,
                                .needs = {},
                                .spans_blocks = true,
                                .build = build_bine,
                                .cost_s = cost_bine};

}  // namespace railpass::collectives::all_gather

#endif
