// SPDX-License-Identifier: BSL-1.0
//
// Scatter and recursive-doubling all-gather: a binomial scatter of p blocks, then rounds in which
// each rank has twice as many blocks as in the one before. A rank is not sent what the scatter gave
// it already.
// p = 8: 0->4, then 0->2 4->6, then 0->1 2->3 4->5 6->7 with half, quarter, eighth of the message;
// then exchanges of 1 block 0-1 2-3 4-5 6-7, of 2 blocks 0-2 1-3 4-6 5-7, of 4 blocks 0-4 1-5 2-6
// 3-7. If p is not a power of two, round d of the all-gather gets d blocks from rank v+d instead of
// exchanging with v xor d, which works for every p; ranges around the end go as two messages.
//
// Cost: 2 ceil(log2 p) alpha + 2 (p-1)/p n beta.
// Good when: messages are of medium length. Poor when: messages are short (twice the rounds of
// binomial), or very long (a pipeline needs half the bytes on each link).
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521; for any p: Bruck et al.: Efficient
// algorithms for all-to-all communications in multiport message-passing systems, IEEE TPDS 8(11),
// 1997, doi:10.1109/71.642949.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, scatter_allgather_recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_SCATTER_ALLGATHER_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_BROADCAST_SCATTER_ALLGATHER_RECURSIVE_DOUBLING

#include "collectives/parts.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_scatter_allgather_recursive_doubling(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, v = s.rank;
  std::vector<after> held{whole(binomial_scatter(b, s))};
  const bool power_of_two = std::has_single_bit(static_cast<unsigned>(p));
  // Calls message(range) for blocks [first, end), in two parts if they go around the end.
  const auto in_parts = [p](int first, int end, auto message) {
    if (first < std::min(end, p))
      message(block_range{.parts = p, .first = first, .count = std::min(end, p) - first});
    if (end > std::max(first, p))
      message(block_range{
          .parts = p, .first = std::max(first, p) - p, .count = end - std::max(first, p)});
  };
  for (int d = 1; d < p; d *= 2) {
    // The blocks rank w lacks of those that it is offered in this round.
    const auto wanted_by = [&](int w, auto message) {
      if (power_of_two) {
        const int first = (w ^ d) & -d;
        if (d >= scattered_blocks(w, p)) in_parts(first, first + d, message);
      } else {
        in_parts(w + std::max(d, scattered_blocks(w, p)), w + d + std::min(d, p - d), message);
      }
    };
    const int to = power_of_two ? v ^ d : wrap(v - d, p);
    const int from = power_of_two ? v ^ d : wrap(v + d, p);
    wanted_by(to, [&](const block_range& r) { b.send(buffer::output, r, to, held); });
    wanted_by(v, [&](const block_range& r) {
      held.push_back(whole(b.receive(buffer::output, r, from)));
    });
  }
  return b.finish();
}

inline double cost_scatter_allgather_recursive_doubling(const cost_query& q, const parameters&) {
  const int p = q.num_ranks;
  double total_s = binomial_scatter_s(q);
  for (int d = 1; d < p; d *= 2)
    total_s += routes(q, std::min(d, p - d) * q.bytes / p).exchange_s(d);
  return total_s;
}

inline constexpr algorithm scatter_allgather_recursive_doubling{
    .op = collective::broadcast,
    .name = "scatter_allgather_recursive_doubling",
    .source =
        "Thakur et al. 2005, doi:10.1177/1094342005051521; Bruck et al. 1997, "
        "doi:10.1109/71.642949",
    .needs = {},
    .build = build_scatter_allgather_recursive_doubling,
    .cost_s = cost_scatter_allgather_recursive_doubling};

}  // namespace railpass::collectives::broadcast

#endif
