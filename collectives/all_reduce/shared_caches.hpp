// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, a tree that follows caches: up it goes as in reduce, at place 0, and down as in
// broadcast, at place 1.
//
// Cost: as shared_tree among the caches, and among a cache's ranks, whose cache lines are faster.
// Good when: a node has several caches or sockets and messages are short. Poor when: they are
// longer than a cell, as the sum of a segment comes down before the next one goes up. Needs: memory
// that all ranks share, and several caches; 9 to 256 ranks; rank order is kept. Source: Katevenis,
// Ploumidis, Marazakis: Impact of cache coherence on the performance of shared-memory based MPI
// primitives, ICPP 2023, doi:10.1145/3605573.3605616.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, shared_caches)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_SHARED_CACHES)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_SHARED_CACHES

#include "collectives/all_reduce/shared_tree.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_shared_caches(const shape& s, const parameters& values) {
  return build_in_shared_tree(s, shared_caches_of(s, values));
}

inline double cost_shared_caches(const cost_query& q, const parameters& values) {
  return time_up_and_down_s(shared_tree_times::by_caches(q, values, q.bytes), q.bytes);
}

inline constexpr algorithm shared_caches{.op = collective::all_reduce,
                                         .name = "shared_caches",
                                         .source = shared_caches_source,
                                         .needs = shared_caches_needs,
                                         .scratch = {.messages = 1},
                                         .parameter_list = {shared_fan_out_parameter},
                                         .build = build_shared_caches,
                                         .cost_s = cost_shared_caches};

}  // namespace railpass::collectives::all_reduce

#endif
