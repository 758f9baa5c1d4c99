// SPDX-License-Identifier: BSL-1.0
//
// Recursive multiplying: recursive doubling with more than one partner per round. The number of
// ranks is written as a product of factors up to `radix`; in each round groups of
// `factor` ranks send their partial results to each other, and all combine them in rank order. p =
// 8, radix 4: 0-1-2-3 4-5-6-7, then 0-4 1-5 2-6 3-7. If p is no such product, as few ranks as
// possible first hand their data to their neighbour and get the result from it at the end.
//
// Cost: log_k p (alpha + (k-1) (n beta + n gamma)), plus 2 (alpha + n beta) + n gamma when folded.
// Good when: messages are short and the start of a message is cheap against its flight.
// Poor when: n beta dominates.
// Needs: nothing; rank order is kept.
// Source: Ruefenacht, Bull, Booth: Generalisation of recursive doubling for AllReduce: now with
// simulation, Parallel Computing 69, 2017, doi:10.1016/j.parco.2017.08.004.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, recursive_multiplying)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_RECURSIVE_MULTIPLYING)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_RECURSIVE_MULTIPLYING

#include "collectives/parts.hpp"

namespace railpass::collectives::all_reduce {

/// The factors of the ranks that take part, their product more than half of p.
inline std::vector<int> multiplying_factors(int p, std::int64_t radix) {
  std::vector<int> factors;
  for (int rest = p; rest > 1; rest /= factors.back())
    factors.push_back(int(std::min<std::int64_t>(radix, rest)));
  return factors;
}

inline int product_of(const std::vector<int>& factors) {
  int product = 1;
  for (const int f : factors) product *= f;
  return product;
}

inline schedule build_recursive_multiplying(const shape& s, const parameters& values) {
  builder b(s);
  const std::vector<int> factors = multiplying_factors(s.num_ranks, values[0]);
  const folding fold(s.num_ranks, product_of(factors), 0);
  if (fold.stands_aside(s.rank)) {
    const step_id handed = b.send(buffer::input, {}, s.rank - 1);
    b.receive(buffer::output, {}, s.rank - 1, {whole(handed)});
    return b.finish();
  }
  // The partial result is the input at first, then by turns in the first two scratch buffers. Those
  // who wait for `readers` may overwrite the one before it.
  buffer at = buffer::input, next = buffer::scratch0;
  step_id ready = no_step;
  std::vector<after> input_used, readers, readers_before;
  std::array arrivals{buffer::scratch2, buffer::scratch3};
  std::array<step_id, 2> used{no_step, no_step};
  std::size_t turn = 0;
  if (fold.stands_for_two(s.rank)) {
    const step_id arrived = b.receive(next, {}, s.rank + 1);
    ready = b.reduce(at, next, {}, {whole(arrived)});
    input_used.push_back(whole(ready));
    at = std::exchange(next, buffer::scratch1);
  }
  const int position = fold.position(s.rank);
  int stride = 1;
  for (const int factor : factors) {
    const int digit = position / stride % factor;
    const auto member = [&](int d) { return fold.rank_at(position + (d - digit) * stride); };
    for (int d = 1; d < factor; ++d)
      readers.push_back(whole(b.send(at, {}, member((digit + d) % factor), {whole(ready)})));
    // sum = part op sum, from the last member's to the first one's: alike on all of them.
    std::vector<after> waits = readers_before;
    step_id sum = no_step;
    if (digit == factor - 1) {
      waits.push_back(whole(ready));
      sum = b.copy(at, next, {}, waits);
      readers.push_back(whole(sum));
    } else {
      sum = b.receive(next, {}, member(factor - 1), waits);
    }
    for (int d = factor - 2; d >= 0; --d) {
      if (d == digit) {
        sum = b.reduce(at, next, {}, {whole(sum), whole(ready)});
        readers.push_back(whole(sum));
        continue;
      }
      const step_id part = b.receive(arrivals[turn], {}, member(d), {whole(used[turn])});
      sum = used[turn] = b.reduce(arrivals[turn], next, {}, {whole(part), whole(sum)});
      turn = 1 - turn;
    }
    if (at == buffer::input) input_used.insert(input_used.end(), readers.begin(), readers.end());
    readers_before = std::exchange(readers, {});
    at = std::exchange(next, at == buffer::scratch0     ? buffer::scratch0
                             : next == buffer::scratch0 ? buffer::scratch1
                                                        : buffer::scratch0);
    ready = sum;
    stride *= factor;
  }
  if (fold.stands_for_two(s.rank)) b.send(at, {}, s.rank + 1, {whole(ready)});
  // In an in-place call the output is what has been sent.
  input_used.push_back(whole(ready));
  b.copy(at, buffer::output, {}, input_used);
  return b.finish();
}

inline double cost_recursive_multiplying(const cost_query& q, const parameters& values) {
  const std::vector<int> factors = multiplying_factors(q.num_ranks, values[0]);
  const routes r(q, q.bytes);
  const double reduce_s = q.machine.reduce.time_s(q.bytes);
  double total_s = q.machine.copy.time_s(q.bytes);
  const bool is_folded = product_of(factors) < q.num_ranks;
  int stride = 1;
  for (const int factor : factors) {
    // On one node if the groups of neighbours fit on nodes.
    const bool near = !is_folded && r.per_node % (stride * factor) == 0;
    const hop& h = near ? r.near : r.far;
    const double exchange_s = near ? h.exchange_s : r.exchange_s(r.per_node);
    double messages = factor - 1;
    // Messages that wait for their receiver also wait for one of two buffers, and so for one member
    // after the other.
    if (q.bytes > q.slowest_link().eager_limit_bytes)
      messages = std::max(messages, 0.37 * (factor - 1) * (factor - 2));
    total_s +=
        exchange_s +
        (messages - 1) * std::max(h.stage_s(1, 1, reduce_s), near ? 0 : r.per_node * h.busy_s) +
        reduce_s;
    stride *= factor;
  }
  if (q.num_ranks > stride) total_s += 2 * r.to(1).one_way_s + reduce_s;
  return total_s;
}

inline constexpr algorithm recursive_multiplying{
    .op = collective::all_reduce,
    .name = "recursive_multiplying",
    .source = "Ruefenacht et al. 2017, doi:10.1016/j.parco.2017.08.004",
    .needs = {},
    .scratch = {.messages = 4},
    .parameter_list = {parameter{"radix", {4, 3, 8, 16}}},
    .build = build_recursive_multiplying,
    .cost_s = cost_recursive_multiplying};

}  // namespace railpass::collectives::all_reduce

#endif
