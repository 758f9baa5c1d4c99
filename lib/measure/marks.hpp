// SPDX-License-Identifier: BSL-1.0
//
// The marks of the machine on which something is measured. Nothing here is linked with MPI.
#pragma once

#include "models/profile.hpp"

#include <string>

namespace railpass::internal::measure {

/// @param mpi_library what MPI_Get_library_version says
/// The rails are those that RAILPASS_RAILS names.
fingerprint marks_with(const std::string& mpi_library, int num_hosts);

}  // namespace railpass::internal::measure
