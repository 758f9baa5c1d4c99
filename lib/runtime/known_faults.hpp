// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/knowledge/advisories.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// The advisories that apply to an MPI library: of the site's file, which the setting `advisories`
/// names, and those that railpass ships. `site_file` is empty without such a file. Throws error
/// that names file and field. Local.
std::vector<knowledge::advisory> known_faults(const std::string& site_file,
                                              std::string_view mpi_library);

}  // namespace railpass::internal
