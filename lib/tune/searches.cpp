// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/searches.hpp"

#include "lib/tune/searches.def"
#include "railpass/base/names.hpp"

namespace railpass::internal::tune {

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
  for (const search_description& s : searches())
    if (s.name == name) return s.make();
  throw error(expected_one_of(name, searches(), &search_description::name));
}

}  // namespace railpass::internal::tune
