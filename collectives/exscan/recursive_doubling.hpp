// SPDX-License-Identifier: BSL-1.0
//
// Recursive doubling of what the rank before has: the inputs move on by one rank, then ranks 1 to
// p-1 do a scan of them: in round i each sends the sum of what it has to the rank 2^i further on,
// and adds what it gets to the left of it. p = 8: r->r+1 with the input, then r->r+1, r->r+2,
// r->r+4 between ranks 1 and 7.
//
// Cost: (1 + ceil(log2 (p-1))) (alpha + n beta + n gamma).
// Good when: messages are short. Poor when: n beta dominates (log2 p times the message).
// Needs: nothing; rank order is kept.
// Source: Hillis, Steele: Data parallel algorithms, CACM 29(12), 1986, doi:10.1145/7902.7903.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(exscan, recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_EXSCAN_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_EXSCAN_RECURSIVE_DOUBLING

#include "collectives/parts.hpp"

namespace railpass::collectives::exscan {

inline schedule build_recursive_doubling(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  step_id sent = no_step;
  if (r + 1 < p) sent = b.send(buffer::input, {}, r + 1);
  if (r == 0) return b.finish();
  // Not into the output, which is the input in an in-place call: the message before would have to
  // end first, and so one rank after the other.
  step_id sum = b.receive(buffer::scratch1, {}, r - 1);
  std::vector<after> readers;
  step_id added = no_step;
  for (int distance = 1; distance < p - 1; distance *= 2) {
    if (r + distance < p)
      readers.push_back(whole(b.send(buffer::scratch1, {}, r + distance, {whole(sum)})));
    if (r - distance < 1) continue;
    const step_id arrived = b.receive(buffer::scratch0, {}, r - distance, {whole(added)});
    readers.insert(readers.end(), {whole(arrived), whole(sum)});
    sum = added = b.reduce(buffer::scratch0, buffer::scratch1, {}, readers);
    readers.clear();
  }
  b.copy(buffer::scratch1, buffer::output, {}, {whole(sum), whole(sent)});
  return b.finish();
}

inline double cost_recursive_doubling(const cost_query& q, const parameters&) {
  const routes r(q, q.bytes);
  double total_s = r.exchange_s(1) + q.machine.copy.time_s(q.bytes);
  for (int distance = 1; distance < q.num_ranks - 1; distance *= 2)
    total_s += r.exchange_s(distance) + q.machine.reduce.time_s(q.bytes);
  return total_s;
}

inline constexpr algorithm recursive_doubling{
    .op = collective::exscan,
    .name = "recursive_doubling",
    .source = "Hillis and Steele 1986, doi:10.1145/7902.7903",
    .needs = {},
    .scratch = {.messages = 2},
    .build = build_recursive_doubling,
    .cost_s = cost_recursive_doubling};

}  // namespace railpass::collectives::exscan

#endif
