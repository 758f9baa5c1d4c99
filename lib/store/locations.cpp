// SPDX-License-Identifier: BSL-1.0
#include "lib/store/store.hpp"
#include "railpass/base/error.hpp"

#include <cstdlib>

namespace railpass::internal::store {

namespace {

std::filesystem::path of_the_site() {
  const char* const other = std::getenv("RAILPASS_SITE");
  return other ? other : "/var/lib/railpass";
}

std::filesystem::path state_folder() {
  // The XDG base directory specification: a relative path is to be ignored.
  if (const char* const state = std::getenv("XDG_STATE_HOME"); state && *state == '/') return state;
  if (const char* const home = std::getenv("HOME"); home && *home == '/')
    return std::filesystem::path(home) / ".local/state";
  throw error(
      "no place for knowledge: neither XDG_STATE_HOME nor HOME is set to a path; "
      "RAILPASS_KNOWLEDGE "
      "can name one");
}

}  // namespace

locations locations_of(std::string_view value) {
  locations result{.own = {}, .others = {}, .site = of_the_site()};
  if (value == "off") return result;
  if (value == "on") {
    result.own = state_folder() / "railpass";
    std::error_code ignored;
    if (std::filesystem::is_directory(result.site, ignored)) result.others = {result.site};
    return result;
  }
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find(':', begin), value.size());
    const std::string_view path = value.substr(begin, end - begin);
    if (path.empty())
      throw error("RAILPASS_KNOWLEDGE '" + std::string(value) +
                  "': expected on, off, or paths that are separated by ':' and not empty");
    if (begin == 0)
      result.own = path;
    else
      result.others.emplace_back(path);
    begin = end + 1;
  }
  return result;
}

}  // namespace railpass::internal::store
