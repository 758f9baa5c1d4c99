// SPDX-License-Identifier: BSL-1.0
//
// The part of files that states where and when they were made.
#include "lib/files/files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <fstream>
#include <thread>

namespace railpass::internal::files {

namespace {

std::string first_line_without_names(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  // MPICH says the length of the string, with its final zero byte.
  while (!line.empty() &&
         (line.back() == '\0' || std::isspace(static_cast<unsigned char>(line.back()))))
    line.pop_back();
  // Open MPI says who built it and where: "package: Open MPI user@host Distribution".
  for (std::size_t at; (at = line.find('@')) != line.npos;) {
    const std::size_t begin = line.find_last_of(' ', at) + 1;
    line.erase(begin, std::min(line.find(' ', at), line.size() - 1) + 1 - begin);
  }
  return line;
}

}  // namespace

fingerprint this_machine(int num_hosts, std::string_view mpi_library) {
  fingerprint here{.num_hosts = num_hosts,
                   .cores_per_host = int(std::thread::hardware_concurrency()),
                   .cpu_model = {},
                   .mpi_library = first_line_without_names(mpi_library)};
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
