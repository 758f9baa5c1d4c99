// SPDX-License-Identifier: BSL-1.0
//
// Parts shared by algorithms with single copies: data go from the giver's memory to the taker's in
// one copy, without a shared-memory slot between them. Either all takers read at the same time, or
// givers write data that are in their caches.
#pragma once

#include "collectives/blocks.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace railpass::collectives {

/// Of 128 places, a rank uses one or two for each other rank.
inline constexpr preconditions single_copy_needs{
    .shared_memory = true, .single_copy = true, .max_ranks = 64};
/// Ranks that read the same memory wait for each other in the kernel.
inline constexpr preconditions few_single_copies_needs{
    .shared_memory = true, .single_copy = true, .max_ranks = 4};
/// 0: takers read; 1: givers write.
inline constexpr parameter giver_writes_parameter{"giver_writes", {0, 1}};
inline constexpr std::string_view single_copy_source =
    "Ma et al. 2013, doi:10.1016/j.jpdc.2013.01.015";

/// Blocks that a rank gives to a peer, or takes from it.
struct handover {
  std::int32_t peer;
  block_range blocks;
};

/// The whole schedule of a rank: it gives blocks of `from` and takes blocks of `output`, in the
/// order of the lists.
/// @param own blocks to copy from input to output in the meantime, if any
inline schedule hand_over(const shape& s, const parameters& values, buffer from,
                          const std::vector<handover>& gives, const std::vector<handover>& takes,
                          const std::optional<block_range>& own = {}) {
  builder b(s, 0, s.num_ranks);
  const bool writes = values[0] != 0;
  // The place has the number of the receiving rank.
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

/// Offers the block of each other rank at the place of that rank's number, the next rank's first.
inline void offer_to_others(builder& b, const shape& s) {
  for (int k = 1; k < s.num_ranks; ++k) {
    const int peer = wrap(s.rank + k, s.num_ranks);
    b.offer(buffer::input, block_of(peer, s.num_ranks), peer, peer);
  }
}

/// Sums this rank's block of all inputs in `sum_at`; copies of the other ranks' blocks pass through
/// `taken`, one after the other. Returns the last step.
inline step_id sum_of_offered(builder& b, const shape& s, buffer sum_at, buffer taken) {
  const int p = s.num_ranks, r = s.rank;
  const block_range own = block_of(r, p);
  // In rank order, from the last rank down. Otherwise each rank starts with itself, so that not all
  // ranks read one rank's memory at the same time.
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

/// The whole schedule of a rank in a reduction. The sum goes to `root`, or to all ranks without a
/// root. Either each rank reads the sum, or the rank that has the sum writes it.
inline schedule sum_of_opened(const shape& s, const parameters& values,
                              const std::optional<int>& root) {
  const int p = s.num_ranks, r = s.rank;
  const block_range own = block_of(r, p);
  const buffer sum_at = buffer::scratch0;
  const bool writes = values[0] != 0, takes = !root || r == *root;
  // Places of sums follow the places of inputs, and also have the number of the receiving rank.
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

/// The busiest rank opens `shown` pieces of memory, and one rank makes `copies` copies of `bytes`
/// one after the other. The owner of the memory then learns the end.
inline double hand_over_s(const cost_query& q, double shown, double copies, double bytes,
                          bool meet = false) {
  const machine_model& m = q.machine;
  return shown * m.publish_s(8) + m.line_s() + copies * m.single_copy_s(bytes, meet) + m.seen_s();
}

/// Between rank 0 and each other rank, `bytes` each, copied by rank 0 or by the other ranks. The
/// kernel serialises copies in one process' memory, whichever rank makes them. Copies by one rank
/// come out of another rank's cache each time (docs/experiments/2026_11_27_ranks_of_a_node.md).
inline double rooted_hand_over_s(const cost_query& q, bool root_copies, double bytes) {
  const double others = q.num_ranks - 1;
  return (root_copies && others > 1 ? 1.5 : 1) * hand_over_s(q, others, others, bytes);
}

/// From each rank to each other rank; either side copies.
inline double all_hand_over_s(const cost_query& q, const parameters&) {
  const double others = q.num_ranks - 1, block = q.bytes / q.num_ranks;
  return hand_over_s(q, others, others, block, others > 1) + q.machine.copy.time_s(block);
}

/// The time of sum_of_offered.
inline double sum_of_offered_s(const cost_query& q) {
  const double others = q.num_ranks - 1, block = q.bytes / q.num_ranks;
  return all_hand_over_s(q, {}) + others * q.machine.reduce.time_s(block);
}

}  // namespace railpass::collectives
