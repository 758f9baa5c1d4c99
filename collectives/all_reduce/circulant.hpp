// SPDX-License-Identifier: BSL-1.0
//
// Circulant graph: the message is cut in p blocks. In the reduce-scatter each rank sends to the
// rank skip_k further on the partial sums of the blocks skip_k and more away, with skips of about
// p/2, p/4,
// ..., 1: then rank r has block r complete. The all-gather goes the same way back. No rank stands
// aside, whatever p is. p = 5, skips 3, 2, 1: r->r+3 with blocks r+3 r+4, r->r+2 with r+2, r->r+1
// with r+1; then r->r-1 with block r, r->r-2 with r, r->r-3 with r and r+1.
//
// Cost: 2 ceil(log2 p) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
// Good when: messages are of medium length or long, above all if p is not a power of two.
// Poor when: messages are very short.
// Needs: a commutative operation (each block is summed beginning at another rank).
// Source: Traeff: Optimal, non-pipelined reduce-scatter and allreduce algorithms, 2024,
// doi:10.48550/arXiv.2410.14234.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, circulant)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_CIRCULANT)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_CIRCULANT

#include "collectives/circulant.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_circulant(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  if (p == 1) return b.finish();
  const std::vector<int> skips = halving_skips(p);
  // Calls visit(range) for `count` blocks from rank `first` on: two ranges if they go around the
  // end.
  const auto blocks = [p](int first, int count, auto visit) {
    first = wrap(first, p);
    const int before_end = std::min(count, p - first);
    visit(block_range{.parts = p, .first = first, .count = before_end});
    if (count > before_end) visit(block_range{.parts = p, .first = 0, .count = count - before_end});
  };
  // Sums are in scratch0, where the first parts arrive; later ones arrive in scratch1.
  std::vector<after> input_used, summed, arrival_free;
  for (std::size_t k = skips.size() - 1; k-- > 0;) {
    const int skip = skips[k], count = skips[k + 1] - skip;
    const bool is_first = k + 2 == skips.size();
    const int to = wrap(r + skip, p), from = wrap(r - skip, p);
    const buffer sum_at = is_first ? buffer::input : buffer::scratch0;
    const buffer arrival = is_first ? buffer::scratch0 : buffer::scratch1;
    blocks(r + skip, count, [&](const block_range& part) {
      const step_id sent = b.send(sum_at, part, to, summed);
      if (is_first) input_used.push_back(whole(sent));
    });
    std::vector<after> arrived;
    blocks(r, count, [&](const block_range& part) {
      arrived.push_back(whole(b.receive(arrival, part, from, arrival_free)));
    });
    arrived.insert(arrived.end(), summed.begin(), summed.end());
    std::vector<after> reduced;
    blocks(r, count, [&](const block_range& part) {
      reduced.push_back(whole(is_first ? b.reduce(buffer::input, arrival, part, arrived)
                                       : b.reduce(arrival, buffer::scratch0, part, arrived)));
    });
    // With an odd number of blocks the middle one is not combined in this round.
    if (is_first && count < skip) {
      const block_range middle{.parts = p, .first = wrap(r + count, p)};
      reduced.push_back(whole(b.copy(buffer::input, buffer::scratch0, middle)));
    }
    if (is_first) input_used.insert(input_used.end(), reduced.begin(), reduced.end());
    if (!is_first) arrival_free = reduced;
    summed = reduced;
  }
  std::vector<after> complete = summed;
  complete.insert(complete.end(), input_used.begin(), input_used.end());
  // In an in-place call the output is the input.
  std::vector<after> held{
      whole(b.copy(buffer::scratch0, buffer::output, {.parts = p, .first = r}, complete))};
  for (std::size_t k = 0; k + 1 < skips.size(); ++k) {
    const int skip = skips[k], count = skips[k + 1] - skip;
    const int to = wrap(r - skip, p), from = wrap(r + skip, p);
    blocks(r, count, [&](const block_range& part) { b.send(buffer::output, part, to, held); });
    std::vector<after> arrived;
    blocks(r + skip, count, [&](const block_range& part) {
      arrived.push_back(whole(b.receive(buffer::output, part, from, input_used)));
    });
    held.insert(held.end(), arrived.begin(), arrived.end());
  }
  return b.finish();
}

inline double cost_circulant(const cost_query& q, const parameters&) {
  const std::vector<int> skips = halving_skips(q.num_ranks);
  const double block = q.bytes / q.num_ranks;
  double total_s = q.machine.copy.time_s(block);
  for (std::size_t k = 0; k + 1 < skips.size(); ++k) {
    const double part = (skips[k + 1] - skips[k]) * block;
    total_s += 2 * routes(q, part).exchange_s(skips[k]) + q.machine.reduce.time_s(part);
  }
  return total_s;
}

inline constexpr algorithm circulant{.op = collective::all_reduce,
                                     .name = "circulant",
                                     .source = "Traeff 2024, doi:10.48550/arXiv.2410.14234",
                                     .needs = {.commutative = true},
                                     .scratch = {.messages = 2},
                                     .build = build_circulant,
                                     .cost_s = cost_circulant};

}  // namespace railpass::collectives::all_reduce

#endif
