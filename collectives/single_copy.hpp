// SPDX-License-Identifier: BSL-1.0
//
// What algorithms of single copies share: what a rank gives goes from its memory to the taker's at
// once, without a cell between. Either the takers read, all at a time, or the givers write, which
// have it in their caches.
#pragma once

#include "collectives/blocks.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace railpass::collectives {

/// A rank shows something at one or two places for each other one, of 128.
inline constexpr preconditions single_copy_needs{
    .shared_memory = true, .single_copy = true, .max_ranks = 64};
/// Who reads the same memory waits for the others in the kernel.
inline constexpr preconditions few_single_copies_needs{
    .shared_memory = true, .single_copy = true, .max_ranks = 4};
/// 0: takers read; 1: givers write.
inline constexpr parameter giver_writes_parameter{"giver_writes", {0, 1}};
inline constexpr std::string_view single_copy_source =
    "Ma et al. 2013, doi:10.1016/j.jpdc.2013.01.015";

/// What a rank gives to a peer, or takes from it.
struct handover {
  std::int32_t peer;
  block_range blocks;
};

/// The whole schedule of a rank: it gives blocks of `from`, and takes blocks of `output`, in that
/// order; `own`, if any, are those that it copies from input to output meanwhile.
inline schedule hand_over(const shape& s, const parameters& values, buffer from,
                          const std::vector<handover>& gives, const std::vector<handover>& takes,
                          const std::optional<block_range>& own = {}) {
  builder b(s, 0, s.num_ranks);
  const bool writes = values[0] != 0;
  // At the place of whom it is for.
  if (writes)
    for (const handover& t : takes) b.invite(buffer::output, t.blocks, t.peer, t.peer);
  else
    for (const handover& g : gives) b.offer(from, g.blocks, g.peer, g.peer);
  if (own) b.copy(buffer::input, buffer::output, *own);
  if (writes)
    for (const handover& g : gives) b.put(g.peer, s.rank, from, g.blocks);
  else
    for (const handover& t : takes) b.get(t.peer, s.rank, buffer::output, t.blocks);
  return b.finish();
}

/// Offers the block of each other rank at the place of its number, the next rank's first.
inline void offer_to_others(builder& b, const shape& s) {
  for (int k = 1; k < s.num_ranks; ++k) {
    const int peer = wrap(s.rank + k, s.num_ranks);
    b.offer(buffer::input, block_of(peer, s.num_ranks), peer, peer);
  }
}

/// Adds up in `sum_at` this rank's block of all inputs, those of the others where they offer it,
/// one after the other by way of `taken`. Returns the last step.
inline step_id sum_of_offered(builder& b, const shape& s, buffer sum_at, buffer taken) {
  const int p = s.num_ranks, r = s.rank;
  const block_range own = block_of(r, p);
  // In rank order, from the last one on; else each from its own on, so that not all read in the
  // memory of one.
  step_id sum = no_step;
  for (int k = 0; k < p; ++k) {
    const int peer = s.commutative ? wrap(r + k, p) : p - 1 - k;
    if (peer == r)
      sum = k == 0 ? b.copy(buffer::input, sum_at, own)
                   : b.reduce(buffer::input, sum_at, own, {whole(sum)});
    else if (k == 0)
      sum = b.get(peer, r, sum_at, own);
    else
      sum = b.reduce(taken, sum_at, own, {whole(b.get(peer, r, taken, own, {whole(sum)}))});
  }
  return sum;
}

/// The whole schedule of a rank whose sum goes to `root` or, if that is nobody, to all: each reads
/// it, or the rank that has it writes.
inline schedule sum_of_opened(const shape& s, const parameters& values,
                              const std::optional<int>& root) {
  const int p = s.num_ranks, r = s.rank;
  const block_range own = block_of(r, p);
  const buffer sum_at = buffer::scratch0;
  const bool writes = values[0] != 0, takes = !root || r == *root;
  // Sums are behind all inputs, at the place of whom they are for as well.
  builder b(s, 0, 2 * p);
  offer_to_others(b, s);
  if (takes && writes)
    for (int k = 1; k < p; ++k) {
      const int peer = wrap(r + k, p);
      b.invite(buffer::output, block_of(peer, p), peer, p + peer);
    }
  const step_id sum = sum_of_offered(b, s, sum_at, buffer::scratch1);
  for (int k = 1; k < p; ++k) {
    const int peer = wrap(r + k, p);
    if (root && peer != *root) continue;
    if (writes)
      b.put(peer, p + r, sum_at, own, {whole(sum)});
    else
      b.offer(sum_at, own, peer, p + peer, {whole(sum)});
  }
  if (!takes) return b.finish();
  b.copy(sum_at, buffer::output, own, {whole(sum)});
  if (!writes)
    for (int k = 1; k < p; ++k) {
      const int peer = wrap(r + k, p);
      b.get(peer, p + r, buffer::output, block_of(peer, p));
    }
  return b.finish();
}

// --- closed forms

/// `shown` pieces of memory are opened by the busiest rank, `copies` of `bytes` made one after the
/// other; whose memory it is hears the end.
inline double hand_over_s(const cost_query& q, double shown, double copies, double bytes,
                          bool meet = false) {
  const machine_model& m = q.machine;
  return shown * m.publish_s(8) + m.line_s() + copies * m.single_copy_s(bytes, meet) + m.seen_s();
}

/// Between rank 0 and each other one, `bytes` each, copied by the one or by the others. The kernel
/// makes copies in one process' memory one after the other, whoever wants them; but what one rank
/// copies alone comes out of another one's cache each time (docs/experiments/
/// 2026_11_27_ranks_of_a_node.md).
inline double rooted_hand_over_s(const cost_query& q, bool root_copies, double bytes) {
  const double others = q.num_ranks - 1;
  return (root_copies && others > 1 ? 1.5 : 1) * hand_over_s(q, others, others, bytes);
}

/// From each rank to each other one, whoever copies.
inline double all_hand_over_s(const cost_query& q, const parameters&) {
  const double others = q.num_ranks - 1, block = q.bytes / q.num_ranks;
  return hand_over_s(q, others, others, block, others > 1) + q.machine.copy.time_s(block);
}

/// sum_of_offered.
inline double sum_of_offered_s(const cost_query& q) {
  const double others = q.num_ranks - 1, block = q.bytes / q.num_ranks;
  return all_hand_over_s(q, {}) + others * q.machine.reduce.time_s(block);
}

}  // namespace railpass::collectives
