// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, a tree that follows caches: parents see that their children have arrived, and
// notify their own parents, within each cache first and then among the caches' first ranks. When
// all have arrived, the root notifies its children, and these theirs.
//
// Cost: as shared_tree among the caches, and among a cache's ranks, whose cache lines are faster.
// Good when: a node has several caches or sockets. Poor when: lines take as long within a cache.
// Needs: memory that all ranks share, and several caches; 9 to 256 ranks.
// Source: Katevenis, Ploumidis, Marazakis: Impact of cache coherence on the performance of
// shared-memory based MPI primitives, ICPP 2023, doi:10.1145/3605573.3605616.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, shared_caches)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_SHARED_CACHES)
#define RAILPASS_COLLECTIVES_BARRIER_SHARED_CACHES

#include "collectives/barrier/shared_tree.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::barrier {

inline schedule build_shared_caches(const shape& s, const parameters& values) {
  return build_in_shared_tree(s, values, shared_caches_of);
}

inline double cost_shared_caches(const cost_query& q, const parameters& values) {
  const auto t = shared_tree_times::by_caches(q, values, 1);
  return t.up_first_s + t.down_first_s;
}

inline constexpr algorithm shared_caches{.op = collective::barrier,
                                         .name = "shared_caches",
                                         .source = shared_caches_source,
                                         .needs = shared_caches_needs,
                                         .parameter_list = {shared_fan_out_parameter},
                                         .build = build_shared_caches,
                                         .cost_s = cost_shared_caches};

}  // namespace railpass::collectives::barrier

#endif
