// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/marks.hpp"

#include "lib/files/files.hpp"
#include "lib/rails/names.hpp"
#include "lib/runtime/settings_in_force.hpp"

#include <unistd.h>

namespace railpass::internal::measure {

fingerprint marks_with(const std::string& mpi_library, int num_hosts) {
  fingerprint here = files::this_machine(num_hosts, mpi_library);
  here.rails = rails_mark(read_settings(environ).values.rails);
  return here;
}

}  // namespace railpass::internal::measure
