// SPDX-License-Identifier: BSL-1.0
//
// Circulant graph: a rank works on the blocks of s ranks from itself on, first of all. In each
// round it sends the upper ceil(s/2) or fewer of them to the rank that stands there, and adds
// what it gets from as far below to its lower ones; s is halved and rounded up. p = 7: r -> r+4
// three blocks, r -> r+2 two, r -> r+1 one.
//
// Cost: ceil(log2 p) alpha + (p-1)/p n (beta + gamma), n the bytes of all blocks.
// Good when: always, for any number of ranks. Poor when: far links are slower than near ones.
// Needs: a commutative operation.
// Source: Traeff: Optimal, non-pipelined reduce-scatter and allreduce algorithms, 2024,
// doi:10.48550/arXiv.2410.14234.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter_block, circulant)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_CIRCULANT)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_CIRCULANT

#include "collectives/blocks.hpp"

namespace railpass::collectives::reduce_scatter_block {

inline schedule build_circulant(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  // Sums are in scratch0, once there are any; from the second round on parts arrive in scratch1.
  buffer at = buffer::input;
  std::vector<after> ready;
  std::vector<after> read;  // scratch1
  for (int here = p; here > 1;) {
    const int kept = (here + 1) / 2, blocks = here - kept;
    const bool first = at == buffer::input;
    for (const block_range& range : around(r + kept, blocks, p))
      b.send(at, range, wrap(r + kept, p), ready);
    std::vector<after> summed = ready, now_read;
    for (const block_range& range : around(r, blocks, p)) {
      const step_id arrived =
          b.receive(first ? buffer::scratch0 : buffer::scratch1, range, wrap(r - kept, p), read);
      std::vector<after> waits = ready;
      waits.push_back(whole(arrived));
      now_read.push_back(whole(
          b.reduce(first ? buffer::input : buffer::scratch1, buffer::scratch0, range, waits)));
      summed.push_back(now_read.back());
    }
    if (first && kept > blocks)
      summed.push_back(whole(
          b.copy(buffer::input, buffer::scratch0, {.parts = p, .first = wrap(r + kept - 1, p)})));
    if (!first) read = std::move(now_read);
    ready = std::move(summed);
    at = buffer::scratch0;
    here = kept;
  }
  b.copy(buffer::scratch0, buffer::output, {.parts = p, .first = r}, ready);
  return b.finish();
}

inline double cost_circulant(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  double total_s = q.machine.copy.time_s(block);
  for (int here = q.num_ranks; here > 1; here = (here + 1) / 2) {
    const int kept = (here + 1) / 2;
    const double bytes = (here - kept) * block;
    total_s += burst_s(routes(q, bytes), 1, leaving(q, kept)) + q.machine.reduce.time_s(bytes);
  }
  return total_s;
}

inline constexpr algorithm circulant{.op = collective::reduce_scatter_block,
                                     .name = "circulant",
                                     .source = "Traeff 2024, doi:10.48550/arXiv.2410.14234",
                                     .needs = {.commutative = true},
                                     .scratch = {.messages = 2},
                                     .build = build_circulant,
                                     .cost_s = cost_circulant};

}  // namespace railpass::collectives::reduce_scatter_block

#endif
