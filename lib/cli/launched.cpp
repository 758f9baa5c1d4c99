// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/launched.hpp"

#include "lib/base/launchers.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <time.h>

namespace railpass::internal::cli {

std::vector<std::string> own_words() {
  std::vector<std::string> words;
  std::ifstream command("/proc/self/cmdline");
  for (std::string word; std::getline(command, word, '\0');) words.push_back(word);
  return words;
}

bool under_launcher() {
  return std::any_of(std::begin(rank_variables), std::end(rank_variables),
                     [](const char* variable) { return std::getenv(variable) != nullptr; });
}

bool is_rank() {
  return std::ranges::any_of(rank_variables, [](const std::string_view variable) {
    return variable != "SLURM_PROCID" && std::getenv(variable.data()) != nullptr;
  });
}

bool speaks_for_the_job() {
  for (const char* variable : rank_variables)
    if (const char* rank = std::getenv(variable)) return std::atoi(rank) == 0;
  return true;
}

void let_rank_0_speak() {
  const timespec while_it_speaks{.tv_sec = 1, .tv_nsec = 0};
  nanosleep(&while_it_speaks, nullptr);
}

}  // namespace railpass::internal::cli
