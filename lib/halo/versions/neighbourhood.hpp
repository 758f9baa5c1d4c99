// SPDX-License-Identifier: BSL-1.0
//
// Base of the versions with MPI's neighbourhood collectives: the neighbours as a graph, and the
// arguments. A graph may name a rank several times. Messages then match in the order in which both
// ends name the rank, which is the order of the shifts. (In MPI's Cartesian topologies of extents 1
// and 2, the side of a message depends on the library.)
#pragma once

#include "lib/halo/version.hpp"

#include <vector>

namespace railpass::internal::halo {

class neighbourhood : public version {
 public:
  ~neighbourhood() override {
    if (graph_ != MPI_COMM_NULL) PMPI_Comm_free(&graph_);
  }

  void end() override {
    check("MPI_Wait", PMPI_Wait(&request_, MPI_STATUS_IGNORE));
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) messages_.unpack(i);
  }

 protected:
  neighbourhood(resources& shared, layout in)
      : plan_(shared.of()), messages_(shared.messages_in(in)) {
    std::vector<int> sources, destinations;
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) {
      const shift& s = plan_.shifts()[i];
      if (s.from != MPI_PROC_NULL) {
        sources.push_back(s.from);
        in_.add(messages_.received(i));
      }
      if (s.to != MPI_PROC_NULL) {
        destinations.push_back(s.to);
        out_.add(messages_.sent(i));
      }
    }
    check("MPI_Dist_graph_create_adjacent",
          PMPI_Dist_graph_create_adjacent(plan_.comm(), int(sources.size()), sources.data(),
                                          MPI_UNWEIGHTED, int(destinations.size()),
                                          destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                          &graph_));
    check("MPI_Comm_set_errhandler", PMPI_Comm_set_errhandler(graph_, MPI_ERRORS_RETURN));
  }

  void pack_all() {
    for (std::size_t i = 0; i < plan_.shifts().size(); ++i) messages_.pack(i);
  }

  /// Arguments for one side of the call. Displacements are addresses.
  struct arguments {
    std::vector<int> counts{};
    std::vector<MPI_Aint> displacements{};
    std::vector<MPI_Datatype> types{};

    void add(const message& m) {
      counts.push_back(m.count);
      displacements.emplace_back();
      check("MPI_Get_address", PMPI_Get_address(m.buffer, &displacements.back()));
      types.push_back(m.type);
    }
  };

  arguments out_, in_;
  MPI_Comm graph_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;  // of the call, if that does not block

 private:
  const plan& plan_;
  messages& messages_;
};

}  // namespace railpass::internal::halo
