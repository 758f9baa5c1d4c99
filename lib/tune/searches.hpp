// SPDX-License-Identifier: BSL-1.0
//
// All searches of searches.def, by name.
#pragma once

#include "lib/tune/search.hpp"

#include <memory>
#include <string_view>

namespace railpass::internal::tune {

struct search_description {
  std::string_view name, summary;
  std::unique_ptr<search> (*make)();
};

/// The first one is the default.
std::span<const search_description> searches();
/// Throws error that lists the names.
std::unique_ptr<search> make_search(std::string_view name);

}  // namespace railpass::internal::tune
