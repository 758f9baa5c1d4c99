// SPDX-License-Identifier: BSL-1.0
//
// Circulant graph: the message is cut in `blocks` blocks; in every round each rank sends one block
// to a rank skip_k further on and receives another one from skip_k back, with skips of about p/2,
// p/4, ..., 1 that take turns. No rank gets a block twice. p = 8, 3
// blocks: 0->1, 0->2 1->3, then 0->4 1->5 2->6 3->7 and on with skips of 1, 2, all ranks busy.
//
// Cost, b blocks: (b - 1 + ceil(log2 p)) (alpha + n/b beta), the least number of rounds there can
// be. Good when: messages are long, for every p: hops as few as a tree's, links as full as a
// pipeline's. Poor when: messages are short. Needs: at most 4096 ranks (every rank looks at all of
// them once). Source: Traeff: Optimal broadcast schedules in logarithmic time with applications to
// broadcast, all-broadcast, reduction and all-reduction, 2024, doi:10.48550/arXiv.2407.18004.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, circulant)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_CIRCULANT)
#define RAILPASS_COLLECTIVES_BROADCAST_CIRCULANT

#include "collectives/circulant.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_circulant(const shape& s, const parameters& values) {
  builder b(s);
  const int blocks = int(values[0]);
  if (s.num_ranks == 1) return b.finish();
  std::vector<step_id> arrived(std::size_t(blocks), no_step);
  const auto part = [&](int block) { return block_range{.parts = blocks, .first = block}; };
  for (const auto& [send, receive] :
       circulant_broadcast::among(s.num_ranks)->rounds(s.rank, blocks)) {
    if (send.block >= 0)
      b.send(buffer::output, part(send.block), send.peer,
             {whole(arrived[std::size_t(send.block)])});
    if (receive.block >= 0)
      arrived[std::size_t(receive.block)] =
          b.receive(buffer::output, part(receive.block), receive.peer);
  }
  return b.finish();
}

inline double cost_circulant(const cost_query& q, const parameters& values) {
  return circulant_broadcast_s(q, double(values[0]));
}

inline constexpr algorithm circulant{.op = collective::broadcast,
                                     .name = "circulant",
                                     .source = "Traeff 2024, doi:10.48550/arXiv.2407.18004",
                                     .needs = {.max_ranks = 4096},
                                     .parameter_list = {blocks_parameter},
                                     .build = build_circulant,
                                     .cost_s = cost_circulant};

}  // namespace railpass::collectives::broadcast

#endif
