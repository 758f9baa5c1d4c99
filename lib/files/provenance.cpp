// SPDX-License-Identifier: BSL-1.0
//
// The part of files that states where and when they were made.
#include "lib/files/files.hpp"

#include <array>
#include <cctype>
#include <ctime>
#include <fstream>
#include <thread>
#include <utility>

namespace railpass::internal::files {

fingerprint this_machine(int num_hosts, std::string_view mpi_library) {
  fingerprint here{.num_hosts = num_hosts,
                   .cores_per_host = int(std::thread::hardware_concurrency()),
                   .cpu_model = {},
                   .mpi_library = std::string(mpi_library.substr(0, mpi_library.find('\n')))};
  // MPICH says the length of the string, with its final zero byte.
  while (!here.mpi_library.empty() &&
         (here.mpi_library.back() == '\0' ||
          std::isspace(static_cast<unsigned char>(here.mpi_library.back()))))
    here.mpi_library.pop_back();
  here.mpi_library = without_names(std::move(here.mpi_library));
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);)
    if (line.starts_with("model name")) {
      const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
      if (value != std::string::npos) here.cpu_model = line.substr(value);
      break;
    }
  return here;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text;
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace railpass::internal::files
