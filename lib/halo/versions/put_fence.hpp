// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(put_fence, at_once, derived)
RAILPASS_LIST_HALO_VERSION(put_fence, at_once, packed)
RAILPASS_LIST_HALO_VERSION(put_fence, by_pairs, derived)
RAILPASS_LIST_HALO_VERSION(put_fence, by_pairs, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_PUT_FENCE)
#define RAILPASS_HALO_VERSIONS_PUT_FENCE

#include "lib/halo/versions/one_sided.hpp"

namespace railpass::internal::halo {

class put_fence final : public fenced {
 public:
  put_fence(resources& shared, pattern how, layout in) : fenced(shared, how, in, access::put) {}
};

}  // namespace railpass::internal::halo

#endif
