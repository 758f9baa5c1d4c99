// SPDX-License-Identifier: BSL-1.0
//
// Recursive doubling: in round i each rank exchanges a message with the rank whose number
// differs in bit i. If p is not a power of two, some even ranks first tell their neighbour,
// which stands for both, and are told by it at the end. p = 8: 0-1 2-3 4-5 6-7, 0-2 1-3 4-6 5-7,
// 0-4 1-5 2-6 3-7.
//
// Cost: log2 p alpha, and 2 alpha if p is not a power of two.
// Good when: p is a power of two and links work better both ways with one peer. Poor when: p is
// not a power of two.
// Needs: nothing.
// Source: Brooks: The butterfly barrier, Int. J. Parallel Programming 15(4), 1986,
// doi:10.1007/BF01407877; for any number of ranks as in Thakur et al. 2005,
// doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_BARRIER_RECURSIVE_DOUBLING

#include "collectives/blocks.hpp"

namespace railpass::collectives::barrier {

inline schedule build_recursive_doubling(const shape& s, const parameters&) {
  builder b(s);
  const folding fold(s.num_ranks);
  const int p = s.num_ranks, r = s.rank;
  std::vector<after> heard;
  const auto tell = [&](int peer) { b.send(buffer::input, {.parts = p, .first = r}, peer, heard); };
  const auto hear = [&](int peer) {
    heard.push_back(whole(b.receive(buffer::output, {.parts = p, .first = peer}, peer)));
  };
  if (fold.stands_aside(r)) {
    tell(r + 1);
    hear(r + 1);
    return b.finish();
  }
  if (fold.stands_for_two(r)) hear(r - 1);
  for (int bit = 1; bit < fold.power; bit *= 2) {
    const int peer = fold.rank_at(fold.position(r) ^ bit);
    tell(peer);
    hear(peer);
  }
  if (fold.stands_for_two(r)) tell(r - 1);
  return b.finish();
}

inline double cost_recursive_doubling(const cost_query& q, const parameters&) {
  const folding fold(q.num_ranks);
  const routes r(q, 1);
  double total_s = fold.folded > 0 ? 2 * r.to(1).one_way_s : 0;
  for (int bit = 1; bit < fold.power; bit *= 2) total_s += r.exchange_s(bit);
  return total_s;
}

inline constexpr algorithm recursive_doubling{.op = collective::barrier,
                                              .name = "recursive_doubling",
                                              .source = "Brooks 1986, doi:10.1007/BF01407877",
                                              .needs = {},
                                              .build = build_recursive_doubling,
                                              .cost_s = cost_recursive_doubling};

}  // namespace railpass::collectives::barrier

#endif
