// SPDX-License-Identifier: BSL-1.0
#include "lib/halo/versions.def"

#include "lib/halo/version.hpp"

namespace railpass::internal::halo {

windows& resources::windows_in(layout in) {
  const std::size_t k = std::size_t(in);
  if (why_none_[k]) throw *why_none_[k];
  try {
    if (!windows_[k]) windows_[k] = std::make_unique<windows>(plan_, in);
  } catch (const unavailable& u) {
    why_none_[k] = u;
    throw;
  }
  return *windows_[k];
}

std::span<const version_description> versions() {
  static constexpr version_description list[] = {
#define RAILPASS_LIST_HALO_VERSION(primitive, how, in)                      \
  {#primitive, pattern::how, layout::in,                                    \
   [](resources& shared, pattern p, layout l) -> std::unique_ptr<version> { \
     return std::make_unique<primitive>(shared, p, l);                      \
   }},
#include "lib/halo/versions.def"
#undef RAILPASS_LIST_HALO_VERSION
  };
  return list;
}

}  // namespace railpass::internal::halo
