// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(sendrecv, by_pairs, derived)
RAILPASS_LIST_HALO_VERSION(sendrecv, by_pairs, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_SENDRECV)
#define RAILPASS_HALO_VERSIONS_SENDRECV

#include "lib/halo/version.hpp"

namespace railpass::internal::halo {

class sendrecv final : public version {
 public:
  sendrecv(resources& shared, pattern, layout in)
      : plan_(shared.of()), messages_(shared.messages_in(in)) {}

  void begin() override {
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) {
      const shift& s = plan_.shifts()[i];
      messages_.pack(i);
      const message out = messages_.sent(i), in = messages_.received(i);
      check("MPI_Sendrecv",
            PMPI_Sendrecv(out.buffer, out.count, out.type, s.to, s.tag, in.buffer, in.count,
                          in.type, s.from, s.tag, plan_.comm(), MPI_STATUS_IGNORE));
      messages_.unpack(i);
    }
  }

 private:
  const plan& plan_;
  messages& messages_;
};

}  // namespace railpass::internal::halo

#endif
