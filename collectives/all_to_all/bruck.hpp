// SPDX-License-Identifier: BSL-1.0
//
// Bruck: a block for the rank i above goes there in jumps, one for each digit of i in base
// `radix` that is not 0, and with it in one message all blocks that make the same jump. p = 8,
// radix 2: r -> r+1 the blocks for distances 1 3 5 7, r -> r+2 those for 2 3 6 7, r -> r+4 those
// for 4 5 6 7.
//
// Cost: (k-1) ceil(log_k p) alpha + (k-1)/k ceil(log_k p) n beta, n the bytes of all blocks of a
// rank, and as many copies.
// Good when: blocks are short. Poor when: blocks are long: each travels up to ceil(log_k p)
// times.
// Needs: nothing.
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all
// communications in multiport message-passing systems, TPDS 8(11), 1997, doi:10.1109/71.642949.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, bruck)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_BRUCK)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_BRUCK

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_to_all {

inline schedule build_bruck(const shape& s, const parameters& values) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  // Block i of scratch0 is for the rank i above its sender. Messages are packed in scratch1, and
  // received in scratch2.
  std::vector<after> ready{whole(b.copy(buffer::input, {.parts = p, .first = r, .count = p - r},
                                        buffer::scratch0, {.parts = p, .count = p - r}))};
  if (r > 0)
    ready.push_back(whole(b.copy(buffer::input, {.parts = p, .count = r}, buffer::scratch0,
                                 {.parts = p, .first = p - r, .count = r})));
  std::vector<after> sent;
  for (int distance = 1; distance < p; distance *= int(std::min<std::int64_t>(values[0], p))) {
    const int period = distance * int(std::min<std::int64_t>(values[0], p));
    std::vector<after> may_pack = ready, unpacked;
    may_pack.insert(may_pack.end(), sent.begin(), sent.end());
    sent.clear();
    int at = 0;
    for (int away = distance; away < std::min(p, period); away += distance) {
      // Runs of `distance` blocks, the last one perhaps cut short.
      const int runs = p - away < distance ? 0 : (p - away - distance) / period + 1;
      const int last = away + runs * period, rest = std::clamp(p - last, 0, distance);
      const int blocks = runs * distance + rest;
      const block_range in_place{.parts = p, .first = away, .stride = period, .count = distance};
      const block_range packed{.parts = p, .first = at, .stride = distance, .count = distance};
      const block_range rest_in_place{.parts = p, .first = last, .count = rest};
      const block_range rest_packed{.parts = p, .first = at + runs * distance, .count = rest};
      step_id pack = no_step, pack_rest = no_step;
      if (runs > 0)
        pack = b.copy(buffer::scratch0, in_place, buffer::scratch1, packed, may_pack,
                      {.rounds = runs});
      if (rest > 0)
        pack_rest =
            b.copy(buffer::scratch0, rest_in_place, buffer::scratch1, rest_packed, may_pack);
      const block_range message{.parts = p, .first = at, .count = blocks};
      sent.push_back(whole(
          b.send(buffer::scratch1, message, wrap(r + away, p), {whole(pack), whole(pack_rest)})));
      const step_id arrived = b.receive(buffer::scratch2, message, wrap(r - away, p), ready);
      if (runs > 0)
        unpacked.push_back(whole(b.copy(buffer::scratch2, packed, buffer::scratch0, in_place,
                                        {whole(arrived), whole(pack)}, {.rounds = runs})));
      if (rest > 0)
        unpacked.push_back(whole(b.copy(buffer::scratch2, rest_packed, buffer::scratch0,
                                        rest_in_place, {whole(arrived), whole(pack_rest)})));
      at += blocks;
    }
    ready = std::move(unpacked);
  }
  b.copy(buffer::scratch0, {.parts = p, .stride = 1}, buffer::output,
         {.parts = p, .first = r, .stride = -1}, ready, {.rounds = p});
  return b.finish();
}

inline double cost_bruck(const cost_query& q, const parameters& values) {
  const int p = q.num_ranks;
  const double block = q.bytes / p;
  const local_model& copy = q.machine.copy;
  double total_s = copy.time_s(q.bytes) + p * copy.time_s(block);
  for (std::int64_t distance = 1; distance < p; distance *= values[0]) {
    // All but those whose digit is 0.
    const std::int64_t period = values[0] * distance;
    const std::int64_t stay = p / period * distance + std::min(p % period, distance);
    const double moved = double(p - stay);
    const double messages = double(std::min<std::int64_t>(values[0] - 1, (p - 1) / distance));
    const double runs = std::ceil(moved / double(distance));
    total_s += strided_burst_s(q, routes(q, moved / messages * block), distance, messages) +
               2 * runs * copy.time_s(moved / runs * block);
  }
  return total_s;
}

inline constexpr algorithm bruck{.op = collective::all_to_all,
                                 .name = "bruck",
                                 .source = "Bruck et al. 1997, doi:10.1109/71.642949",
                                 .needs = {},
                                 .scratch = {.messages = 3},
                                 .spans_blocks = true,
                                 .parameter_list = {parameter{"radix", {2, 3, 4, 8, 16}}},
                                 .build = build_bruck,
                                 .cost_s = cost_bruck};

}  // namespace railpass::collectives::all_to_all

#endif
