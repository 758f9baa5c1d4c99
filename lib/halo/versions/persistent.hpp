// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(persistent, at_once, derived)
RAILPASS_LIST_HALO_VERSION(persistent, at_once, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_PERSISTENT)
#define RAILPASS_HALO_VERSIONS_PERSISTENT

#include "lib/halo/version.hpp"

#include <vector>

namespace railpass::internal::halo {

class persistent final : public version {
 public:
  persistent(resources& shared, pattern, layout in)
      : plan_(shared.of()), messages_(shared.messages_in(in)) {
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) {
      const shift& s = plan_.shifts()[i];
      if (s.from == MPI_PROC_NULL) continue;
      const message m = messages_.received(i);
      check("MPI_Recv_init", PMPI_Recv_init(m.buffer, m.count, m.type, s.from, s.tag, plan_.comm(),
                                            &requests_.emplace_back(MPI_REQUEST_NULL)));
    }
    num_receives_ = int(requests_.size());
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) {
      const shift& s = plan_.shifts()[i];
      if (s.to == MPI_PROC_NULL) continue;
      const message m = messages_.sent(i);
      check("MPI_Send_init", PMPI_Send_init(m.buffer, m.count, m.type, s.to, s.tag, plan_.comm(),
                                            &requests_.emplace_back(MPI_REQUEST_NULL)));
    }
  }
  ~persistent() override {
    for (MPI_Request& request : requests_)
      if (request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
  }

  void begin() override {
    start(0, num_receives_);
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) messages_.pack(i);
    start(num_receives_, int(requests_.size()));
  }
  void end() override {
    check("MPI_Waitall",
          PMPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) messages_.unpack(i);
  }

 private:
  void start(int first, int last) {
    if (first == last) return;  // not even none is allowed in Open MPI
    check("MPI_Startall", PMPI_Startall(last - first, requests_.data() + first));
  }

  const plan& plan_;
  messages& messages_;
  std::vector<MPI_Request> requests_;  // receives, then sends
  int num_receives_ = 0;
};

}  // namespace railpass::internal::halo

#endif
