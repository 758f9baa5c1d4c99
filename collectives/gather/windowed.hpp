// SPDX-License-Identifier: BSL-1.0
//
// Windowed: every rank sends its block to the root, which lets only a limited number of them
// come at once. p = 8, two requests: 1->0 2->0, then 3->0 when the first has come, ...
//
// Cost: alpha ceil((p-1)/w) at least, (p-1)/p n beta, n the bytes of all blocks.
// Good when: long blocks from many ranks at once are too many for the root's port. Poor when:
// blocks are short (they come unasked).
// Needs: nothing.
// Source: MPI Forum: MPI: A Message-Passing Interface Standard 4.0, 2021, section 6.5, which
// defines the call so; windows: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005,
// doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gather, windowed)
#elif !defined(RAILPASS_COLLECTIVES_GATHER_WINDOWED)
#define RAILPASS_COLLECTIVES_GATHER_WINDOWED

#include "collectives/gather/linear.hpp"

namespace railpass::collectives::gather {

inline schedule build_windowed(const shape& s, const parameters& values) {
  builder b(s);
  const int p = s.num_ranks, v = s.rank;
  const block_range own{.parts = p, .first = v};
  if (v != 0) {
    b.send(buffer::input, own, 0);
    return b.finish();
  }
  b.receive(buffer::output, {.parts = p, .first = 1, .stride = 1}, 1, {},
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

inline constexpr algorithm windowed{.op = collective::gather,
                                    .name = "windowed",
                                    .source =
                                        "MPI 4.0, section 6.5, as the call is defined; Thakur et "
                                        "al. 2005, doi:10.1177/1094342005051521",
                                    .needs = {},
                                    .parameter_list = {parameter{"requests", {4, 1, 2, 8, 16}}},
                                    .build = build_windowed,
                                    .cost_s = cost_windowed};

}  // namespace railpass::collectives::gather

#endif
