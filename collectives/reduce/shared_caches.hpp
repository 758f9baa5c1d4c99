// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, a tree that follows caches: each adds up in a tree of its own, and the caches'
// first ranks in another one. 3 ranks on each of 3 caches, fan_out 2: 3 fetches 5's, combines 4's,
// adds its own and publishes; 6 does so with 8's and 7's; 0 does so with 2's and 1's, and combines
// 3's and 6's, which take longest. In rank order it fetches 6's, combines 3's, 2's and 1's, and
// adds its own.
//
// Cost: as shared_tree among the caches, and among a cache's ranks, whose cache lines are faster.
// Good when: a node has several caches or sockets. Poor when: lines take as long within a cache.
// Needs: memory that all ranks share, and several caches; 9 to 256 ranks; rank order is kept.
// Source: Katevenis, Ploumidis, Marazakis: Impact of cache coherence on the performance of
// shared-memory based MPI primitives, ICPP 2023, doi:10.1145/3605573.3605616.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, shared_caches)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SHARED_CACHES)
#define RAILPASS_COLLECTIVES_REDUCE_SHARED_CACHES

#include "collectives/reduce/shared_tree.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::reduce {

inline schedule build_shared_caches(const shape& s, const parameters& values) {
  return build_in_shared_tree(s, shared_caches_of(s, values));
}

inline double cost_shared_caches(const cost_query& q, const parameters& values) {
  return time_up_s(shared_tree_times::by_caches(q, values, q.bytes), q.bytes);
}

inline constexpr algorithm shared_caches{.op = collective::reduce,
                                         .name = "shared_caches",
                                         .source = shared_caches_source,
                                         .needs = shared_caches_needs,
                                         .scratch = {.messages = 1},
                                         .parameter_list = {shared_fan_out_parameter},
                                         .build = build_shared_caches,
                                         .cost_s = cost_shared_caches};

}  // namespace railpass::collectives::reduce

#endif
