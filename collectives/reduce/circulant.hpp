// SPDX-License-Identifier: BSL-1.0
//
// Circulant graph: the broadcast of `blocks` blocks on a circulant graph, run backwards: where a
// rank would send a block it receives and adds a partial sum, and it sends its own sum where it
// would receive. p = 8: as broadcast/circulant.hpp from the last round to the first, with the
// arrows turned.
//
// Cost, b blocks: (b - 1 + ceil(log2 p)) (alpha + n/b (beta + gamma)).
// Good when: messages are long, for every p: hops as few as a tree's, links as full as a
// pipeline's. Poor when: messages are short. Needs: a commutative operation (every block is summed
// along another tree); at most 4096 ranks. Source: Traeff: Optimal broadcast schedules in
// logarithmic time with applications to broadcast, all-broadcast, reduction and all-reduction,
// 2024, doi:10.48550/arXiv.2407.18004.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, circulant)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_CIRCULANT)
#define RAILPASS_COLLECTIVES_REDUCE_CIRCULANT

#include "collectives/circulant.hpp"

namespace railpass::collectives::reduce {

/// A rank sends no earlier than it has received what came so many rounds before: else it would fill
/// its link with sums of late rounds that are ready at once. With 6 a reduction of 1 MiB in 128
/// blocks over 32 ranks takes 49 ms in the simulator (200 Mbit/s), without 85.
inline constexpr std::size_t circulant_rounds_ahead = 6;

inline schedule build_circulant(const shape& s, const parameters& values) {
  builder b(s);
  const int blocks = int(values[0]);
  struct sum {
    buffer at;
    step_id ready;            // the sum is there
    step_id added = no_step;  // the last part has been added: scratch1 is free
  };
  const sum begin = s.rank == 0 ? sum{buffer::output, b.copy(buffer::input, buffer::output, {})}
                                : sum{buffer::input, no_step};
  if (s.num_ranks == 1) return b.finish();
  std::vector<sum> sums(std::size_t(blocks), begin);
  std::vector<step_id> arrivals(circulant_rounds_ahead, no_step);
  const auto rounds = circulant_broadcast::among(s.num_ranks)->rounds(s.rank, blocks);
  for (std::size_t i = rounds.size(); i-- > 0;) {
    const auto [receive, send] = rounds[i];
    if (send.block >= 0) {
      const sum& mine = sums[std::size_t(send.block)];
      b.send(mine.at, {.parts = blocks, .first = send.block}, send.peer,
             {whole(mine.ready), whole(arrivals[arrivals.size() - circulant_rounds_ahead])});
    }
    if (receive.block < 0) continue;
    const block_range part{.parts = blocks, .first = receive.block};
    sum& mine = sums[std::size_t(receive.block)];
    if (mine.at == buffer::input) {
      arrivals.push_back(b.receive(buffer::scratch0, part, receive.peer));
      mine.at = buffer::scratch0;
      mine.ready = b.reduce(buffer::input, mine.at, part, {whole(arrivals.back())});
    } else {
      arrivals.push_back(b.receive(buffer::scratch1, part, receive.peer, {whole(mine.added)}));
      mine.ready = mine.added =
          b.reduce(buffer::scratch1, mine.at, part, {whole(arrivals.back()), whole(mine.ready)});
    }
  }
  return b.finish();
}

inline double cost_circulant(const cost_query& q, const parameters& values) {
  const double blocks = double(values[0]);
  return circulant_broadcast_s(q, blocks, q.machine.reduce.time_s(q.bytes / blocks),
                               double(circulant_rounds_ahead));
}

inline constexpr algorithm circulant{.op = collective::reduce,
                                     .name = "circulant",
                                     .source = "Traeff 2024, doi:10.48550/arXiv.2407.18004",
                                     .needs = {.commutative = true, .max_ranks = 4096},
                                     .scratch = {.messages = 2},
                                     .parameter_list = {blocks_parameter},
                                     .build = build_circulant,
                                     .cost_s = cost_circulant};

}  // namespace railpass::collectives::reduce

#endif
