// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/names.hpp"

#include <algorithm>
#include <iterator>

namespace railpass::internal {

namespace {

std::size_t kind_named(std::string_view name) {
  return std::size_t(std::ranges::find(rail_kind_names, name) - rail_kind_names);
}

}  // namespace

std::vector<named_rail> parse_rails(std::string_view rails) {
  std::vector<named_rail> result;
  while (!rails.empty()) {
    const std::string_view word = rails.substr(0, rails.find(','));
    rails.remove_prefix(std::min(word.size() + 1, rails.size()));
    if (word.empty()) continue;
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::size_t kind = kind_named(word.substr(0, colon));
    if (kind < std::size(rail_kind_names))
      result.push_back({kind, std::string(word.substr(std::min(colon + 1, word.size())))});
    else
      result.push_back({kind_named("tcp"), std::string(word)});
  }
  return result;
}

std::string rails_mark(std::string_view rails) {
  const bool only_mpi = std::ranges::all_of(
      parse_rails(rails), [](const named_rail& r) { return rail_kind_names[r.kind] == "mpi"; });
  return only_mpi ? "" : std::string(rails);
}

}  // namespace railpass::internal
