// SPDX-License-Identifier: BSL-1.0
//
// Scattered: every rank sends each other one its block, with a limited number of messages under way
// in each direction. p = 8: r -> r+1, r+2, ..., r+7.
//
// Cost: alpha + (p-1) m beta, m the bytes of a block.
// Good when: blocks are long, or the network takes many messages at once. Poor when: p alpha
// dominates.
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, scattered)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_SCATTERED)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_SCATTERED

#include "collectives/parts.hpp"

namespace railpass::collectives::all_to_all {

inline schedule build_scattered(const shape& s, const parameters& values) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const auto requests = std::int32_t(values[0]);
  b.receive(buffer::output, {.parts = p, .first = left, .stride = -1}, left, {},
            {.rounds = p - 1, .peer_stride = -1, .window = requests});
  b.send(buffer::input, {.parts = p, .first = right, .stride = 1}, right, {},
         {.rounds = p - 1, .peer_stride = 1, .window = requests});
  b.copy(buffer::input, buffer::output, {.parts = p, .first = r});
  return b.finish();
}

inline double cost_scattered(const cost_query& q, const parameters& values) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  const double others = q.num_ranks - 1;
  const double to_far = q.num_ranks - r.per_node;
  const hop& h = to_far > 0 ? r.far : r.near;
  const double messages = to_far > 0 ? r.per_node * to_far : others;
  // With few requests each batch waits for the slowest message of the one before.
  const double batches = std::ceil(others / double(values[0]));
  return std::max({(messages - 1) * h.busy_s, (others - 1) * h.crowded_stage_s(),
                   (batches - 1) * h.one_way_s}) +
         h.one_way_s + q.machine.copy.time_s(block);
}

inline constexpr algorithm scattered{.op = collective::all_to_all,
                                     .name = "scattered",
                                     .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                     .needs = {},
                                     .parameter_list = {parameter{"requests", {64, 4, 8, 16, 32}}},
                                     .build = build_scattered,
                                     .cost_s = cost_scattered};

}  // namespace railpass::collectives::all_to_all

#endif
