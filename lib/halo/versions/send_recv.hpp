// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(send_recv, by_pairs, derived)
RAILPASS_LIST_HALO_VERSION(send_recv, by_pairs, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_SEND_RECV)
#define RAILPASS_HALO_VERSIONS_SEND_RECV

#include "lib/halo/version.hpp"

namespace railpass::internal::halo {

class send_recv final : public version {
 public:
  send_recv(resources& shared, pattern, layout in)
      : plan_(shared.of()), messages_(shared.messages_in(in)) {}

  void begin() override {
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) {
      const bool receives_first = plan_.shifts()[i].receives_first;
      if (receives_first) receive(i);
      send(i);
      if (!receives_first) receive(i);
    }
  }

 private:
  void send(std::size_t i) {
    messages_.pack(i);
    const message m = messages_.sent(i);
    const shift& s = plan_.shifts()[i];
    check("MPI_Send", PMPI_Send(m.buffer, m.count, m.type, s.to, s.tag, plan_.comm()));
  }
  void receive(std::size_t i) {
    const message m = messages_.received(i);
    const shift& s = plan_.shifts()[i];
    check("MPI_Recv",
          PMPI_Recv(m.buffer, m.count, m.type, s.from, s.tag, plan_.comm(), MPI_STATUS_IGNORE));
    messages_.unpack(i);
  }

  const plan& plan_;
  messages& messages_;
};

}  // namespace railpass::internal::halo

#endif
