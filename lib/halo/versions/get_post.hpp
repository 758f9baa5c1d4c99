// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(get_post, at_once, derived)
RAILPASS_LIST_HALO_VERSION(get_post, at_once, packed)
RAILPASS_LIST_HALO_VERSION(get_post, by_pairs, derived)
RAILPASS_LIST_HALO_VERSION(get_post, by_pairs, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_GET_POST)
#define RAILPASS_HALO_VERSIONS_GET_POST

#include "lib/halo/versions/one_sided.hpp"

namespace railpass::internal::halo {

class get_post final : public posted {
 public:
  get_post(resources& shared, pattern how, layout in) : posted(shared, how, in, access::get) {}
};

}  // namespace railpass::internal::halo

#endif
