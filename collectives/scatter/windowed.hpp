// SPDX-License-Identifier: BSL-1.0
//
// Windowed: the root sends every rank its block, a limited number of them at once. p = 8, two
// requests: 0->1 0->2, then 0->3 when the first has gone, ...
//
// Cost: alpha ceil((p-1)/w) at least, (p-1)/p n beta, n the bytes of all blocks.
// Good when: many long messages at once share the root's port and all end late. Poor when:
// blocks are short.
// Needs: nothing.
// Source: MPI Forum: MPI: A Message-Passing Interface Standard 4.0, 2021, section 6.6, which
// defines the call so; windows: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005,
// doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatter, windowed)
#elif !defined(RAILPASS_COLLECTIVES_SCATTER_WINDOWED)
#define RAILPASS_COLLECTIVES_SCATTER_WINDOWED

#include "collectives/scatter/linear.hpp"

namespace railpass::collectives::scatter {

inline schedule build_windowed(const shape& s, const parameters& values) {
  builder b(s);
  const int p = s.num_ranks, v = s.rank;
  const block_range own{.parts = p, .first = v};
  if (v != 0) {
    b.receive(buffer::output, own, 0);
    return b.finish();
  }
  b.send(buffer::input, {.parts = p, .first = 1, .stride = 1}, 1, {},
         {.rounds = p - 1, .peer_stride = 1, .window = std::int32_t(values[0])});
  b.copy(buffer::input, buffer::output, own);
  return b.finish();
}

inline double cost_windowed(const cost_query& q, const parameters& values) {
  const double block = q.bytes / q.num_ranks, linear_s = cost_linear(q, values);
  if (block <= q.slowest_link().eager_limit_bytes) return linear_s;
  // Each batch waits for the hand-shake of the one before.
  const routes r(q, block);
  const double near = std::ceil((r.per_node - 1) / double(values[0]));
  const double far = std::ceil((q.num_ranks - r.per_node) / double(values[0]));
  return std::max(linear_s, near * r.near.one_way_s + far * r.far.one_way_s);
}

inline constexpr algorithm windowed{.op = collective::scatter,
                                    .name = "windowed",
                                    .source =
                                        "MPI 4.0, section 6.6, as the call is defined; Thakur et "
                                        "al. 2005, doi:10.1177/1094342005051521",
                                    .needs = {},
                                    .parameter_list = {parameter{"requests", {4, 1, 2, 8, 16}}},
                                    .build = build_windowed,
                                    .cost_s = cost_windowed};

}  // namespace railpass::collectives::scatter

#endif
