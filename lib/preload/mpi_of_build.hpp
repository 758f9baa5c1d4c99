// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>

namespace railpass::internal {

constexpr std::string_view mpi_family_of_standard_abi = "standard MPI ABI";

/// The family name of the MPI for which railpass was built. A build runs only with its family; the
/// standard ABI covers libraries of several families. Empty: an MPI outside the list below.
constexpr std::string_view mpi_family_of_build() {
#if defined(OMPI_MAJOR_VERSION)
  return "Open MPI";
#elif defined(I_MPI_VERSION)
  return "Intel(R) MPI";
#elif defined(MPICH_VERSION)
  return "MPICH";
#elif defined(MPI_ABI_VERSION)
  return mpi_family_of_standard_abi;
#else
  return {};
#endif
}

/// With its version, as the library calls itself at the beginning of MPI_Get_library_version.
inline std::string mpi_of_build() {
#if defined(OMPI_MAJOR_VERSION)
  return "Open MPI v" + std::to_string(OMPI_MAJOR_VERSION) + '.' +
         std::to_string(OMPI_MINOR_VERSION) + '.' + std::to_string(OMPI_RELEASE_VERSION);
#elif defined(I_MPI_VERSION)
  return "Intel(R) MPI Library " I_MPI_VERSION;
#elif defined(MPICH_VERSION)
  return "MPICH Version: " MPICH_VERSION;
#elif defined(MPI_ABI_VERSION)
  return "the standard MPI ABI " + std::to_string(MPI_ABI_VERSION) + '.' +
         std::to_string(MPI_ABI_SUBVERSION);
#else
  return {};
#endif
}

}  // namespace railpass::internal
