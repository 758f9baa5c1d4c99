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

/// A rank shows something at a place for each other one, and a ring has 16 cells.
inline constexpr preconditions single_copy_needs{
    .shared_memory = true, .single_copy = true, .max_ranks = 16};
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

// --- closed forms

/// `shown` pieces of memory are opened by the busiest rank, `copies` of `bytes` made one after the
/// other; whose memory it is hears the end.
inline double hand_over_s(const cost_query& q, double shown, double copies, double bytes) {
  const machine_model& m = q.machine;
  return shown * m.publish_s(8) + copies * m.single_copy_s(bytes) + m.seen_s();
}

/// Between rank 0 and each other one, `bytes` each, copied by the one or by the others.
inline double rooted_hand_over_s(const cost_query& q, bool root_copies, double bytes) {
  const double others = q.num_ranks - 1;
  return root_copies ? hand_over_s(q, 1, others, bytes) : hand_over_s(q, others, 1, bytes);
}

/// From each rank to each other one, whoever copies.
inline double all_hand_over_s(const cost_query& q, const parameters&) {
  const double others = q.num_ranks - 1, block = q.bytes / q.num_ranks;
  return hand_over_s(q, others, others, block) + q.machine.copy.time_s(block);
}

}  // namespace railpass::collectives
