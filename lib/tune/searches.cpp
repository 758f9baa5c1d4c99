// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/searches.hpp"

#include "lib/tune/searches.def"

namespace railpass::tune {

std::span<const search_description> searches() {
  static const search_description list[] = {
#define RAILPASS_LIST_SEARCH(name, summary) \
  {#name, summary, [] { return std::unique_ptr<search>(std::make_unique<name##_search>()); }},
#include "lib/tune/searches.def"
#undef RAILPASS_LIST_SEARCH
  };
  return list;
}

std::unique_ptr<search> make_search(std::string_view name) {
  std::string names;
  for (const search_description& s : searches()) {
    if (s.name == name) return s.make();
    names += (names.empty() ? "" : ", ") + std::string(s.name);
  }
  throw error("'" + std::string(name) + "': expected one of " + names);
}

}  // namespace railpass::tune
