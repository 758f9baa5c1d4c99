// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/agreement.hpp"
#include "lib/rails/registry.hpp"
#include "lib/rails/tcp/rail.hpp"

namespace railpass::internal {

packet_rails open_tcp_rails(MPI_Comm comm, const mpi_tags&,
                            const std::vector<wanted_rail>& wanted) {
  std::vector<std::string> names;
  for (const wanted_rail& w : wanted) names.push_back(w.name);
  std::vector<tcp::connected_rail> connected = tcp::connect_all(comm, names);
  packet_rails result;
  on_all(comm, [&] {
    for (std::size_t i = 0; i < connected.size(); ++i)
      result.push_back(std::make_unique<tcp::rail>(wanted[i].index, std::move(connected[i])));
  });
  return result;
}

}  // namespace railpass::internal
