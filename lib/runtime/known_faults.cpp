// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/known_faults.hpp"

#include "lib/files/files.hpp"

#include <algorithm>
#include <iterator>

namespace railpass::internal {

std::vector<knowledge::advisory> known_faults(const std::string& site_file,
                                              std::string_view mpi_library) {
  std::vector<knowledge::advisory> all;
  if (!site_file.empty()) all = files::read_advisories(site_file).advisories;
  std::ranges::move(files::shipped_advisories().advisories, std::back_inserter(all));
  const knowledge::library_release here = knowledge::release_of(mpi_library);
  std::erase_if(all, [&](const knowledge::advisory& a) { return !knowledge::is_of(a, here); });
  return all;
}

}  // namespace railpass::internal
