// SPDX-License-Identifier: BSL-1.0
//
// Linear: the root sends the whole message to every other rank, one after the other.
// p = 8: 0->1, 0->2, 0->3, 0->4, 0->5, 0->6, 0->7.
//
// Cost: alpha + (p-1) n beta (the root's link carries everything).
// Good when: there are few ranks, or messages so short that only the number of hops counts.
// Poor when: (p-1) n beta is felt.
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521 (its baseline).
//
// This is also the file to read first if you want to add an algorithm. A new one is a header like
// this and one line in collectives/algorithms.def; from then on it can be chosen, pinned, predicted
// and listed, and `ctest -R unit.algorithms` proves it for every number of ranks up to 64.

// registry.hpp includes every header twice. The second time it only wants the name; that is why
// there is an include guard of this shape instead of #pragma once.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, linear)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_LINEAR)
#define RAILPASS_COLLECTIVES_BROADCAST_LINEAR

#include "collectives/parts.hpp"

namespace railpass::collectives::broadcast {

// 1. The schedule: what the rank `s.rank` of `s.num_ranks` does. Ranks are virtual: the root is
//    always 0, and the executor adds the real root when the schedule runs. Nothing here knows the
//    size of the message: steps name blocks of it, and the default range {} is all of it.
inline schedule build_linear(const shape& s, const parameters&) {
  builder b(s);
  // A broadcast happens in `output`: the root's buffer holds the message, all other buffers get it.
  if (s.rank != 0) {
    b.receive(buffer::output, {}, 0);
    return b.finish();
  }
  // One step may be a loop: round i sends to rank 1 + i. The root's schedule therefore has one step
  // for 2 ranks and for 4096 ranks. The braces before the loop are the steps to wait for: here
  // none, the root may send at once. A step that must wait names the other step, as
  // {whole(arrived)}; see binomial.hpp for that, and for the segments of long messages.
  b.send(buffer::output, {}, 1, {}, {.rounds = s.num_ranks - 1, .peer_stride = 1});
  return b.finish();
}

// 2. The closed form: how long it takes on a machine, in seconds. It is asked for every arm
//    whenever a new kind of call turns up, so it does arithmetic and nothing else. The simulator
//    simulates the schedule above and shows (in tests) when this is wrong.
inline double cost_linear(const cost_query& q, const parameters&) {
  // The cost of a message between ranks of one node (near) and of different nodes (far).
  const routes r(q, q.bytes);
  const int to_near = r.per_node - 1, to_far = q.num_ranks - r.per_node;
  // The last message waits until the link has carried those before it.
  if (to_far == 0) return (to_near - 1) * r.near.busy_s + r.near.one_way_s;
  return to_near * r.near.send_s + (to_far - 1) * r.far.busy_s + r.far.one_way_s;
}

// 3. The descriptor: everything railpass knows about the algorithm. Preconditions go in `needs`
//    (empty is best), parameters in `parameter_list`: every combination of their values is an arm.
inline constexpr algorithm linear{.op = collective::broadcast,
                                  .name = "linear",
                                  .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                  .needs = {},
                                  .build = build_linear,
                                  .cost_s = cost_linear};

}  // namespace railpass::collectives::broadcast

#endif
