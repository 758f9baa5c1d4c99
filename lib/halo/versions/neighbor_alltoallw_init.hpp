// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
#if MPI_VERSION >= 4
RAILPASS_LIST_HALO_VERSION(neighbor_alltoallw_init, at_once, derived)
RAILPASS_LIST_HALO_VERSION(neighbor_alltoallw_init, at_once, packed)
#endif
#elif !defined(RAILPASS_HALO_VERSIONS_NEIGHBOR_ALLTOALLW_INIT)
#define RAILPASS_HALO_VERSIONS_NEIGHBOR_ALLTOALLW_INIT

#include "lib/halo/versions/neighbourhood.hpp"

#if MPI_VERSION >= 4
namespace railpass::internal::halo {

class neighbor_alltoallw_init final : public neighbourhood {
 public:
  neighbor_alltoallw_init(resources& shared, pattern, layout in) : neighbourhood(shared, in) {
    check("MPI_Neighbor_alltoallw_init",
          PMPI_Neighbor_alltoallw_init(MPI_BOTTOM, out_.counts.data(), out_.displacements.data(),
                                       out_.types.data(), MPI_BOTTOM, in_.counts.data(),
                                       in_.displacements.data(), in_.types.data(), graph_,
                                       MPI_INFO_NULL, &request_));
  }
  ~neighbor_alltoallw_init() override {
    if (request_ != MPI_REQUEST_NULL) PMPI_Request_free(&request_);
  }

  void begin() override {
    pack_all();
    check("MPI_Start", PMPI_Start(&request_));
  }
};

}  // namespace railpass::internal::halo
#endif

#endif
