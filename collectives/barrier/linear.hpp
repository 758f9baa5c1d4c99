// SPDX-License-Identifier: BSL-1.0
//
// Linear: every rank notifies rank 0 on arrival; rank 0 notifies all ranks after the last arrival.
// p = 8: 1->0, ..., 7->0, then 0->1, ..., 0->7.
//
// Cost: 2 alpha + 2 (p-1) o at rank 0.
// Good when: ranks are few. Poor when: they are many.
// Needs: nothing.
// Source: Hoefler, Cerquetti, Mehlan, Mietke, Rehm: A practical approach to the rating of barrier
// algorithms using the LogP model and Open MPI, ICPP Workshops 2005, doi:10.1109/ICPPW.2005.14.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, linear)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_LINEAR)
#define RAILPASS_COLLECTIVES_BARRIER_LINEAR

#include "collectives/parts.hpp"

namespace railpass::collectives::barrier {

inline schedule build_linear(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const block_range own{.parts = p, .first = r};
  const loop all{.rounds = p - 1, .peer_stride = 1};
  if (r != 0) {
    b.send(buffer::input, own, 0);
    b.receive(buffer::output, {.parts = p, .first = 0}, 0);
    return b.finish();
  }
  const step_id come = b.receive(buffer::output, {.parts = p, .first = 1, .stride = 1}, 1, {}, all);
  b.send(buffer::input, own, 1, {whole(come)}, all);
  return b.finish();
}

inline double cost_linear(const cost_query& q, const parameters&) {
  const routes r(q, 1);
  const double far = q.num_ranks - r.per_node, near = r.per_node - 1;
  const hop& h = far > 0 ? r.far : r.near;
  return 2 * h.one_way_s + std::max(0.0, far - 1) * (r.far.receive_s + r.far.busy_s) +
         near * (r.near.receive_s + r.near.send_s);
}

inline constexpr algorithm linear{.op = collective::barrier,
                                  .name = "linear",
                                  .source = "Hoefler et al. 2005, doi:10.1109/ICPPW.2005.14",
                                  .needs = {},
                                  .build = build_linear,
                                  .cost_s = cost_linear};

}  // namespace railpass::collectives::barrier

#endif
