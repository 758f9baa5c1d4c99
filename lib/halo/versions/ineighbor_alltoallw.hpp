// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(ineighbor_alltoallw, at_once, derived)
RAILPASS_LIST_HALO_VERSION(ineighbor_alltoallw, at_once, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_INEIGHBOR_ALLTOALLW)
#define RAILPASS_HALO_VERSIONS_INEIGHBOR_ALLTOALLW

#include "lib/halo/versions/neighbourhood.hpp"

namespace railpass::internal::halo {

class ineighbor_alltoallw final : public neighbourhood {
 public:
  ineighbor_alltoallw(resources& shared, pattern, layout in) : neighbourhood(shared, in) {}

  void begin() override {
    pack_all();
    check("MPI_Ineighbor_alltoallw",
          PMPI_Ineighbor_alltoallw(MPI_BOTTOM, out_.counts.data(), out_.displacements.data(),
                                   out_.types.data(), MPI_BOTTOM, in_.counts.data(),
                                   in_.displacements.data(), in_.types.data(), graph_, &request_));
  }
};

}  // namespace railpass::internal::halo

#endif
