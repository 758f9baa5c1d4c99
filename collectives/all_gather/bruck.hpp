// SPDX-License-Identifier: BSL-1.0
//
// Bruck: a rank that has the blocks of itself and the d-1 ranks after it gets d blocks each from
// the ranks d, 2 d, ..., (radix-1) d after it, which makes it radix d blocks. The blocks are
// stored in the order of distance, and moved to their positions at the end. p = 8, radix
// 2: r+1 -> r one block, r+2 -> r two, r+4 -> r four.
//
// Cost: ceil(log_k p) alpha + (p-1)/p n beta, n the bytes of all blocks, and a copy of n.
// Good when: blocks are short; any number of ranks. Poor when: n beta dominates and copies
// count.
// Needs: nothing.
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all
// communications in multiport message-passing systems, TPDS 8(11), 1997, doi:10.1109/71.642949.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, bruck)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_BRUCK)
#define RAILPASS_COLLECTIVES_ALL_GATHER_BRUCK

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_bruck(const shape& s, const parameters& values) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  // Block i of scratch0 is rank r+i's.
  std::vector<after> held{
      whole(b.copy(buffer::input, {.parts = p, .first = r}, buffer::scratch0, {.parts = p}))};
  for (std::int64_t distance = 1; distance < p; distance *= values[0]) {
    std::vector<after> arrived = held;
    for (std::int64_t away = distance; away < std::min<std::int64_t>(p, values[0] * distance);
         away += distance) {
      const auto blocks = std::int32_t(std::min(distance, p - away));
      b.send(buffer::scratch0, {.parts = p, .count = blocks}, wrap(r - away, p), held);
      arrived.push_back(whole(b.receive(
          buffer::scratch0, {.parts = p, .first = int(away), .count = blocks}, wrap(r + away, p))));
    }
    held = std::move(arrived);
  }
  b.copy(buffer::scratch0, {.parts = p, .count = p - r}, buffer::output,
         {.parts = p, .first = r, .count = p - r}, held);
  if (r > 0)
    b.copy(buffer::scratch0, {.parts = p, .first = p - r, .count = r}, buffer::output,
           {.parts = p, .count = r}, held);
  return b.finish();
}

inline double cost_bruck(const cost_query& q, const parameters& values) {
  const double block = q.bytes / q.num_ranks;
  double total_s = q.machine.copy.time_s(block) + q.machine.copy.time_s(q.bytes);
  for (std::int64_t distance = 1; distance < q.num_ranks; distance *= values[0]) {
    // As many blocks as come in this round, in messages of a mean length.
    const double blocks =
        double(std::min<std::int64_t>(values[0] * distance, q.num_ranks) - distance);
    const double messages = std::ceil(blocks / double(distance));
    total_s += strided_burst_s(q, routes(q, blocks / messages * block), distance, messages);
  }
  return total_s;
}

inline constexpr algorithm bruck{.op = collective::all_gather,
                                 .name = "bruck",
                                 .source = "Bruck et al. 1997, doi:10.1109/71.642949",
                                 .needs = {},
                                 .scratch = {.messages = 1},
                                 .spans_blocks = true,
                                 .parameter_list = {parameter{"radix", {2, 3, 4, 8}}},
                                 .build = build_bruck,
                                 .cost_s = cost_bruck};

}  // namespace railpass::collectives::all_gather

#endif
