// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(put_post, at_once, derived)
RAILPASS_LIST_HALO_VERSION(put_post, at_once, packed)
RAILPASS_LIST_HALO_VERSION(put_post, by_pairs, derived)
RAILPASS_LIST_HALO_VERSION(put_post, by_pairs, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_PUT_POST)
#define RAILPASS_HALO_VERSIONS_PUT_POST

#include "lib/halo/versions/one_sided.hpp"

namespace railpass::internal::halo {

class put_post final : public posted {
 public:
  put_post(resources& shared, pattern how, layout in) : posted(shared, how, in, access::put) {}
};

}  // namespace railpass::internal::halo

#endif
