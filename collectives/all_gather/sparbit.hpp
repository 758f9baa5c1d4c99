// SPDX-License-Identifier: BSL-1.0
//
// Sparbit (stripe parallel binomial trees): every block goes down a binomial tree of its own,
// the longest way first, so that the many blocks of the last rounds go to neighbours; each is a
// message, and lands where it belongs. p = 8: r -> r+4 one block, then r -> r+2 two, then r ->
// r+1 four.
//
// Cost: log2 p alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: ranks near each other have fast links; any number of ranks. Poor when: blocks are
// so short that p messages take longer than log2 p.
// Needs: nothing.
// Source: Loch, Koslovski: Sparbit: Towards to a Logarithmic-Cost and Data Locality-Aware MPI
// Allgather Algorithm, J. Grid Computing 21, 2023, doi:10.1007/s10723-023-09650-5.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, sparbit)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_SPARBIT)
#define RAILPASS_COLLECTIVES_ALL_GATHER_SPARBIT

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_sparbit(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  std::vector<after> held{whole(b.copy(buffer::input, buffer::output, {.parts = p, .first = r}))};
  for (int distance = int(std::bit_ceil(static_cast<unsigned>(p))) / 2; distance > 0;
       distance /= 2) {
    // A rank has blocks r, r - 2 distance, r - 4 distance, ... and gets those between.
    const int messages = ((p - 1) / distance + 1) / 2, left = wrap(r - distance, p);
    const loop all{.rounds = messages};
    b.send(buffer::output, {.parts = p, .first = r, .stride = -2 * distance}, wrap(r + distance, p),
           held, all);
    held.push_back(whole(b.receive(
        buffer::output, {.parts = p, .first = left, .stride = -2 * distance}, left, {}, all)));
  }
  return b.finish();
}

inline double cost_sparbit(const cost_query& q, const parameters&) {
  const int p = q.num_ranks;
  const routes r(q, q.bytes / p);
  double total_s = q.machine.copy.time_s(q.bytes / p);
  for (int distance = int(std::bit_ceil(static_cast<unsigned>(p))) / 2; distance > 0;
       distance /= 2) {
    const int messages = ((p - 1) / distance + 1) / 2;
    total_s += burst_s(r, messages, messages * leaving(q, distance));
  }
  return total_s;
}

inline constexpr algorithm sparbit{
    .op = collective::all_gather,
    .name = "sparbit",
    .source = "Loch and Koslovski 2023, doi:10.1007/s10723-023-09650-5",
    .needs = {},
    .build = build_sparbit,
    .cost_s = cost_sparbit};

}  // namespace railpass::collectives::all_gather

#endif
