// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(neighbor_alltoallw, at_once, derived)
RAILPASS_LIST_HALO_VERSION(neighbor_alltoallw, at_once, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_NEIGHBOR_ALLTOALLW)
#define RAILPASS_HALO_VERSIONS_NEIGHBOR_ALLTOALLW

#include "lib/halo/versions/neighbourhood.hpp"

namespace railpass::internal::halo {

class neighbor_alltoallw final : public neighbourhood {
 public:
  neighbor_alltoallw(resources& shared, pattern, layout in) : neighbourhood(shared, in) {}

  void begin() override {
    pack_all();
    check("MPI_Neighbor_alltoallw",
          PMPI_Neighbor_alltoallw(MPI_BOTTOM, out_.counts.data(), out_.displacements.data(),
                                  out_.types.data(), MPI_BOTTOM, in_.counts.data(),
                                  in_.displacements.data(), in_.types.data(), graph_));
  }
};

}  // namespace railpass::internal::halo

#endif
