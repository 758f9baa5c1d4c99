// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(send_irecv, at_once, derived)
RAILPASS_LIST_HALO_VERSION(send_irecv, at_once, packed)
RAILPASS_LIST_HALO_VERSION(send_irecv, by_pairs, derived)
RAILPASS_LIST_HALO_VERSION(send_irecv, by_pairs, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_SEND_IRECV)
#define RAILPASS_HALO_VERSIONS_SEND_IRECV

#include "lib/halo/version.hpp"

#include <vector>

namespace railpass::internal::halo {

/// Receives start before sends, so synchronous messages cannot wait in a cycle.
class send_irecv final : public version {
 public:
  send_irecv(resources& shared, pattern how, layout in)
      : plan_(shared.of()),
        messages_(shared.messages_in(in)),
        by_pairs_(how == pattern::by_pairs),
        requests_(plan_.shifts().size(), MPI_REQUEST_NULL) {}

  void begin() override {
    const std::size_t n = plan_.shifts().size();
    if (by_pairs_) {
      for (std::size_t i = 0; i < n; ++i) {
        receive(i);
        send(i);
        check("MPI_Wait", PMPI_Wait(&requests_[i], MPI_STATUS_IGNORE));
        messages_.unpack(i);
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) receive(i);
      for (std::size_t i = 0; i < n; ++i) send(i);
    }
  }

  void end() override {
    if (by_pairs_) return;
    check("MPI_Waitall",
          PMPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) messages_.unpack(i);
  }

 private:
  void receive(std::size_t i) {
    const message m = messages_.received(i);
    const shift& s = plan_.shifts()[i];
    check("MPI_Irecv",
          PMPI_Irecv(m.buffer, m.count, m.type, s.from, s.tag, plan_.comm(), &requests_[i]));
  }
  void send(std::size_t i) {
    messages_.pack(i);
    const message m = messages_.sent(i);
    const shift& s = plan_.shifts()[i];
    check("MPI_Send", PMPI_Send(m.buffer, m.count, m.type, s.to, s.tag, plan_.comm()));
  }

  const plan& plan_;
  messages& messages_;
  bool by_pairs_;
  std::vector<MPI_Request> requests_;
};

}  // namespace railpass::internal::halo

#endif
