// SPDX-License-Identifier: BSL-1.0
//
// Recursive doubling: in round i each rank sends the sum of what it has to the rank 2^i further on,
// and adds what it gets to the left of it. After round i a rank has the sum of the last 2^(i+1)
// ranks. p = 8: r->r+1, r->r+2, r->r+4.
//
// Cost: ceil(log2 p) (alpha + n beta + n gamma).
// Good when: messages are short. Poor when: n beta dominates (log2 p times the message).
// Needs: nothing; rank order is kept.
// Source: Hillis, Steele: Data parallel algorithms, CACM 29(12), 1986, doi:10.1145/7902.7903.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scan, recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_SCAN_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_SCAN_RECURSIVE_DOUBLING

#include "collectives/parts.hpp"

namespace railpass::collectives::scan {

inline schedule build_recursive_doubling(const shape& s, const parameters&) {
  builder b(s);
  partial_result partial(b, true);
  for (int distance = 1; distance < s.num_ranks; distance *= 2) {
    if (s.rank + distance < s.num_ranks) partial.send({}, s.rank + distance);
    if (s.rank >= distance) partial.receive_and_reduce({}, s.rank - distance, true);
  }
  partial.to_output({});
  return b.finish();
}

inline double cost_recursive_doubling(const cost_query& q, const parameters&) {
  const routes r(q, q.bytes);
  double total_s = q.machine.copy.time_s(q.bytes);
  for (int distance = 1; distance < q.num_ranks; distance *= 2)
    total_s += r.exchange_s(distance) + q.machine.reduce.time_s(q.bytes);
  return total_s;
}

inline constexpr algorithm recursive_doubling{
    .op = collective::scan,
    .name = "recursive_doubling",
    .source = "Hillis and Steele 1986, doi:10.1145/7902.7903",
    .needs = {},
    .scratch = {.messages = 2},
    .build = build_recursive_doubling,
    .cost_s = cost_recursive_doubling};

}  // namespace railpass::collectives::scan

#endif
