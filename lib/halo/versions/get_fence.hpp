// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(get_fence, at_once, derived)
RAILPASS_LIST_HALO_VERSION(get_fence, at_once, packed)
RAILPASS_LIST_HALO_VERSION(get_fence, by_pairs, derived)
RAILPASS_LIST_HALO_VERSION(get_fence, by_pairs, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_GET_FENCE)
#define RAILPASS_HALO_VERSIONS_GET_FENCE

#include "lib/halo/versions/one_sided.hpp"

namespace railpass::internal::halo {

class get_fence final : public fenced {
 public:
  get_fence(resources& shared, pattern how, layout in) : fenced(shared, how, in, access::get) {}
};

}  // namespace railpass::internal::halo

#endif
