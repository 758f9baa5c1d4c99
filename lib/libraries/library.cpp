// SPDX-License-Identifier: BSL-1.0
#include "lib/libraries/library.hpp"

#include "railpass/base/error.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <array>

namespace railpass::internal::libraries {
namespace {

constexpr std::string_view prefix = "native:";

constexpr std::array list{
#define RAILPASS_MPI_LIBRARY(name) &name##_library,
#include "lib/libraries/libraries.def"
#undef RAILPASS_MPI_LIBRARY
};

}  // namespace

own_arm parse_own_arm(std::string_view text) {
  const auto fail = [&](const std::string& what) {
    return error("arm '" + std::string(text) + "': " + what);
  };
  if (!text.starts_with(prefix))
    throw fail("expected native:ALGORITHM or native:ALGORITHM:SEGMENT");
  const std::string_view words = text.substr(prefix.size());
  const std::size_t colon = words.find(':');
  own_arm arm{.name = std::string(words.substr(0, colon))};
  if (arm.name.empty())
    throw fail("expected an algorithm of the MPI library, or all, after native:");
  if (colon == std::string_view::npos) return arm;
  const auto bytes = parse_bytes(words.substr(colon + 1));
  if (!bytes || *bytes < 1) throw fail("expected a size such as 32KiB after the algorithm");
  arm.segment_bytes = *bytes;
  return arm;
}

std::string name_of(const own_arm& arm) {
  return std::string(prefix) + arm.name +
         (arm.segment_bytes > 0 ? ":" + std::to_string(arm.segment_bytes) : "");
}

std::span<const mpi_library* const> all() { return list; }

const mpi_library* find(std::string_view mark) {
  const auto found = std::ranges::find_if(list, [&](const mpi_library* l) { return l->is(mark); });
  return found == list.end() ? nullptr : *found;
}

}  // namespace railpass::internal::libraries
