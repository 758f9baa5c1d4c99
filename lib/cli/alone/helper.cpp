// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/alone/helper.hpp"

#include "lib/cli/launched.hpp"
#include "lib/launch/engine.hpp"
#include "railpass/base/error.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

namespace railpass::internal::cli {

void become_helper() {
  const std::string helper = launch::program_of(launch::engine_of_this_job(), "railpass-mpi");
  std::vector<std::string> words = own_words();
  words.front() = launch::this_program();
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(helper.c_str(), pointers.data());
  throw error("'" + helper + "' cannot be started: " + std::strerror(errno));
}

}  // namespace railpass::internal::cli
