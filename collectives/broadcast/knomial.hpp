// SPDX-License-Identifier: BSL-1.0
//
// k-nomial tree: binomial with radix k. Write the ranks in base k: a rank's parent is the rank with
// its last digit other than 0 made 0. So each round multiplies the ranks served by k, with k-1
// messages of every rank that has the data.
// p = 8, radix 4: 0->4, then 0->1 0->2 0->3 4->5 4->6 4->7.
//
// Cost: ceil(log_k p) alpha + (k-1) ceil(log_k p) n beta.
// Good when: messages are short and the start of a message is cheap against its flight.
// Poor when: n beta dominates.
// Needs: nothing.
// Source: Graham et al.: Cheetah: a framework for scalable hierarchical collective operations,
// CCGrid 2011, doi:10.1109/CCGrid.2011.42.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, knomial)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_KNOMIAL)
#define RAILPASS_COLLECTIVES_BROADCAST_KNOMIAL

#include "collectives/parts.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_knomial(const shape& s, const parameters& values) {
  builder b(s, values[1]);
  const std::int64_t radix = values[0], p = s.num_ranks, v = s.rank;
  // The stride of v's last digit other than 0; of the root, the first stride beyond p.
  std::int64_t stride = 1;
  while (v == 0 ? stride < p : v / stride % radix == 0) stride *= radix;
  step_id arrived = no_step;
  if (v != 0)
    arrived = b.receive(buffer::output, {}, int(v - v / stride % radix * stride), {}, by_segments);
  for (stride /= radix; stride > 0; stride /= radix)
    for (std::int64_t child = v + stride; child < std::min(p, v + radix * stride); child += stride)
      b.send(buffer::output, {}, int(child), {each(arrived)}, by_segments);
  return b.finish();
}

inline double cost_knomial(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[1], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  return knomial_depth_s(q.num_ranks, values[0], r) +
         (st.segments - 1) * knomial_root_s(q.num_ranks, values[0], r);
}

inline constexpr algorithm knomial{
    .op = collective::broadcast,
    .name = "knomial",
    .source = "Graham et al. 2011, doi:10.1109/CCGrid.2011.42",
    .needs = {},
    .parameter_list = {parameter{"radix", {4, 3, 8, 16}}, segment_bytes_parameter},
    .build = build_knomial,
    .cost_s = cost_knomial};

}  // namespace railpass::collectives::broadcast

#endif
