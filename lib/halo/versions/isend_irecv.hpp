// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(isend_irecv, at_once, packed)
RAILPASS_LIST_HALO_VERSION(isend_irecv, at_once, derived)
RAILPASS_LIST_HALO_VERSION(isend_irecv, by_pairs, derived)
RAILPASS_LIST_HALO_VERSION(isend_irecv, by_pairs, packed)
RAILPASS_LIST_HALO_VERSION(isend_irecv, by_dimension, derived)
RAILPASS_LIST_HALO_VERSION(isend_irecv, by_dimension, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_ISEND_IRECV)
#define RAILPASS_HALO_VERSIONS_ISEND_IRECV

#include "lib/halo/version.hpp"

#include <vector>

namespace railpass::internal::halo {

class isend_irecv final : public version {
 public:
  isend_irecv(resources& shared, pattern how, layout in)
      : comm_(shared.of().comm()),
        shifts_(how == pattern::by_dimension ? shared.of().forwarding() : shared.of().shifts()),
        messages_(how == pattern::by_dimension ? shared.forwarding_in(in) : shared.messages_in(in)),
        together_(how == pattern::at_once    ? shifts_.size()
                  : how == pattern::by_pairs ? 1
                                             : 2),
        requests_(2 * shifts_.size(), MPI_REQUEST_NULL) {}

  void begin() override {
    for (std::size_t first = 0; first < shifts_.size(); first += together_) {
      for (std::size_t i = first; i < first + together_; ++i) receive(i);
      for (std::size_t i = first; i < first + together_; ++i) send(i);
      if (together_ < shifts_.size()) wait(first);
    }
  }

  void end() override {
    if (together_ == shifts_.size()) wait(0);
  }

 private:
  void receive(std::size_t i) {
    const message m = messages_.received(i);
    const shift& s = shifts_[i];
    check("MPI_Irecv",
          PMPI_Irecv(m.buffer, m.count, m.type, s.from, s.tag, comm_, &requests_[2 * i]));
  }
  void send(std::size_t i) {
    messages_.pack(i);
    const message m = messages_.sent(i);
    const shift& s = shifts_[i];
    check("MPI_Isend",
          PMPI_Isend(m.buffer, m.count, m.type, s.to, s.tag, comm_, &requests_[2 * i + 1]));
  }

  void wait(std::size_t first) {
    check("MPI_Waitall",
          PMPI_Waitall(int(2 * together_), requests_.data() + 2 * first, MPI_STATUSES_IGNORE));
    for (std::size_t i = first; i < first + together_; ++i) messages_.unpack(i);
  }

  MPI_Comm comm_;
  const std::vector<shift>& shifts_;
  messages& messages_;
  std::size_t together_;               // shifts that are under way at once
  std::vector<MPI_Request> requests_;  // of each shift the receive and the send
};

}  // namespace railpass::internal::halo

#endif
