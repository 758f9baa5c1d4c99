// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, a tree that follows caches: one of the caches' first ranks, and one within each
// cache, so that a message comes over to a cache once, or as often as fan_out says. 3 ranks on each
// of 3 caches, fan_out 2: 0 publishes, 1, 2, 3 and 6 fetch that, and 3 and 6 publish it for 4 and
// 5, and 7 and 8.
//
// Cost: as shared_tree among the caches, and among a cache's ranks, whose cache lines are faster.
// Good when: a node has several caches or sockets. Poor when: lines take as long within a cache.
// Needs: memory that all ranks share, and several caches; 9 to 256 ranks.
// Source: Katevenis, Ploumidis, Marazakis: Impact of cache coherence on the performance of
// shared-memory based MPI primitives, ICPP 2023, doi:10.1145/3605573.3605616.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, shared_caches)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_SHARED_CACHES)
#define RAILPASS_COLLECTIVES_BROADCAST_SHARED_CACHES

#include "collectives/broadcast/shared_tree.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_shared_caches(const shape& s, const parameters& values) {
  return build_in_shared_tree(s, shared_caches_of(s, values));
}

inline double cost_shared_caches(const cost_query& q, const parameters& values) {
  return time_down_s(shared_tree_times::by_caches(q, values, q.bytes), q.bytes);
}

inline constexpr algorithm shared_caches{.op = collective::broadcast,
                                         .name = "shared_caches",
                                         .source = shared_caches_source,
                                         .needs = shared_caches_needs,
                                         .parameter_list = {shared_fan_out_parameter},
                                         .build = build_shared_caches,
                                         .cost_s = cost_shared_caches};

}  // namespace railpass::collectives::broadcast

#endif
