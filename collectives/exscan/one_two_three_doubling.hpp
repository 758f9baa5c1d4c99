// SPDX-License-Identifier: BSL-1.0
//
// 1-2-3 doubling: each rank sends its input to the next rank, then the sum of its input and what it
// got to the rank 2 further on, then what it has to the ranks 3, 6, 12 further on, and adds what it
// gets to the left of it. After these rounds it has the sum of the 1, 3, 6, 12 ranks before it.
// p = 8: r->r+1, r->r+2, r->r+3, r->r+6, the last two between ranks 1 and 7.
//
// Cost: ceil(log2 (p-1) + log2 (4/3)) (alpha + n beta + n gamma): for about half of all p a round
// less than recursive_doubling.
// Good when: messages are short. Poor when: n beta dominates: ranks 1 to 3 are done after two
// rounds, and then send to all later ranks at once.
// Needs: nothing; rank order is kept.
// Source: Traeff: Communication Round and Computation Efficient Exclusive Prefix-Sums Algorithms,
// 2025, doi:10.48550/arXiv.2507.04785.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(exscan, one_two_three_doubling)
#elif !defined(RAILPASS_COLLECTIVES_EXSCAN_ONE_TWO_THREE_DOUBLING)
#define RAILPASS_COLLECTIVES_EXSCAN_ONE_TWO_THREE_DOUBLING

#include "collectives/parts.hpp"

namespace railpass::collectives::exscan {

inline schedule build_one_two_three_doubling(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  step_id sent = no_step, sent_with_own = no_step;
  if (r + 1 < p) sent = b.send(buffer::input, {}, r + 1);
  if (r == 0) {
    if (p > 2) b.send(buffer::input, {}, 2);
    return b.finish();
  }
  step_id sum = b.receive(buffer::scratch1, {}, r - 1);
  std::vector<after> readers;
  if (r + 2 < p) {
    const step_id own = b.copy(buffer::input, buffer::output, {}, {whole(sent)});
    const step_id with_own =
        b.reduce(buffer::scratch1, buffer::output, {}, {whole(sum), whole(own)});
    sent_with_own = b.send(buffer::output, {}, r + 2, {whole(with_own)});
    readers.push_back(whole(with_own));
  }
  step_id added = no_step;
  const auto add_from = [&](int peer) {
    const step_id arrived = b.receive(buffer::scratch0, {}, peer, {whole(added)});
    readers.insert(readers.end(), {whole(arrived), whole(sum)});
    sum = added = b.reduce(buffer::scratch0, buffer::scratch1, {}, readers);
    readers.clear();
  };
  if (r >= 2) add_from(r - 2);
  for (int distance = 3; distance < p - 1; distance *= 2) {
    if (r + distance < p)
      readers.push_back(whole(b.send(buffer::scratch1, {}, r + distance, {whole(sum)})));
    if (r > distance) add_from(r - distance);
  }
  b.copy(buffer::scratch1, buffer::output, {}, {whole(sum), whole(sent), whole(sent_with_own)});
  return b.finish();
}

inline double cost_one_two_three_doubling(const cost_query& q, const parameters&) {
  const routes r(q, q.bytes);
  const double reduce_s = q.machine.reduce.time_s(q.bytes);
  double total_s = r.exchange_s(1) + q.machine.copy.time_s(q.bytes);
  if (q.num_ranks > 2) total_s += r.exchange_s(2) + (q.num_ranks > 3 ? 2 : 1) * reduce_s;
  for (int distance = 3; distance < q.num_ranks - 1; distance *= 2)
    total_s += r.exchange_s(distance) + reduce_s;
  return total_s;
}

inline constexpr algorithm one_two_three_doubling{
    .op = collective::exscan,
    .name = "one_two_three_doubling",
    .source = "Traeff 2025, doi:10.48550/arXiv.2507.04785",
    .needs = {},
    .scratch = {.messages = 2},
    .build = build_one_two_three_doubling,
    .cost_s = cost_one_two_three_doubling};

}  // namespace railpass::collectives::exscan

#endif
