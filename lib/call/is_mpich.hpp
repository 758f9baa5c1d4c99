// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mpi.h>

#include <array>
#include <string_view>

namespace railpass::internal {

/// Whether the MPI library is MPICH or one of its derivatives. Local, from MPI_Init to
/// MPI_Finalize.
#if defined(MPICH_VERSION) || defined(I_MPI_VERSION)
constexpr bool is_mpich() { return true; }
#elif defined(OMPI_MAJOR_VERSION)
constexpr bool is_mpich() { return false; }
#else  // the standard ABI: what runs is not known before
inline bool is_mpich() {
  static const bool is = [] {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    PMPI_Get_library_version(text.data(), &length);
    const std::string_view version = text.data();
    return version.find("MPICH") != version.npos || version.starts_with("Intel(R) MPI");
  }();
  return is;
}
#endif

}  // namespace railpass::internal
