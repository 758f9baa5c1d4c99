// SPDX-License-Identifier: BSL-1.0
//
// n-way dissemination: in round i each rank sends to the radix-1 ranks that are radix^i, 2 radix^i,
// ... above it that all ranks it has heard of have arrived. p = 9, radix 3: r -> r+1 r+2, then r ->
// r+3 r+6.
//
// Cost: ceil(log_k p) (alpha + (k-2) o).
// Good when: the start of a message is cheap against its flight. Poor when: ranks of a node
// share a slow port.
// Needs: nothing.
// Source: Hoefler, Mehlan, Mietke, Rehm: Fast barrier synchronization for InfiniBand, IPDPS
// 2006, doi:10.1109/IPDPS.2006.1639561.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, n_way_dissemination)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_N_WAY_DISSEMINATION)
#define RAILPASS_COLLECTIVES_BARRIER_N_WAY_DISSEMINATION

#include "collectives/blocks.hpp"

namespace railpass::collectives::barrier {

inline schedule build_n_way_dissemination(const shape& s, const parameters& values) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  std::vector<after> heard;
  for (std::int64_t distance = 1; distance < p; distance *= values[0]) {
    std::vector<after> arrived = heard;
    for (std::int64_t away = distance; away < std::min<std::int64_t>(p, values[0] * distance);
         away += distance) {
      const int from = wrap(r - away, p);
      b.send(buffer::input, {.parts = p, .first = r}, wrap(r + away, p), heard);
      arrived.push_back(whole(b.receive(buffer::output, {.parts = p, .first = from}, from)));
    }
    heard = std::move(arrived);
  }
  return b.finish();
}

inline double cost_n_way_dissemination(const cost_query& q, const parameters& values) {
  return n_way_dissemination_s(q, routes(q, 1), values[0]);
}

inline constexpr algorithm n_way_dissemination{
    .op = collective::barrier,
    .name = "n_way_dissemination",
    .source = "Hoefler et al. 2006, doi:10.1109/IPDPS.2006.1639561",
    .needs = {},
    .parameter_list = {parameter{"radix", {3, 4, 8, 16}}},
    .build = build_n_way_dissemination,
    .cost_s = cost_n_way_dissemination};

}  // namespace railpass::collectives::barrier

#endif
