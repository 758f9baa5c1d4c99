// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/alone/helper.hpp"

#include "lib/cli/launched.hpp"
#include "lib/launch/engine.hpp"
#include "railpass/base/error.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace railpass::internal::cli {

namespace {

// The value of --launcher; empty: none.
std::string launcher_in(const std::vector<std::string>& words) {
  constexpr std::string_view option = "--launcher";
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(option) && words[i][option.size()] == '=')
      return words[i].substr(option.size() + 1);
  }
  return {};
}

}  // namespace

void become_helper() {
  std::vector<std::string> words = own_words();
  const std::string helper =
      launch::program_of(launch::engine_of_this_job(launcher_in(words)), "railpass-mpi");
  words.front() = launch::this_program();
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(helper.c_str(), pointers.data());
  throw error("'" + helper + "' cannot be started: " + std::strerror(errno));
}

}  // namespace railpass::internal::cli
