// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/registry.hpp"

#include "lib/rails/agreement.hpp"
#include "lib/rails/names.hpp"
#include "railpass/base/error.hpp"
#include "railpass/transport/split.hpp"

#include <iterator>

namespace railpass::internal {

packet_rails open_packet_rails(MPI_Comm comm, const mpi_tags& over, std::string_view rails) {
  const std::vector<named_rail> named = parse_rails(rails);
  long kinds = 1;  // digits to a base above their number
  for (const named_rail& r : named) kinds = (kinds * 8 + long(r.kind) + 1) % 1000000007;
  static_assert(std::size(rail_openers) < 7);
  long bounds[2] = {kinds, -kinds};
  PMPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_LONG, MPI_MAX, comm);
  if (bounds[0] != -bounds[1])
    throw error(
        "the rails cannot be opened: expected rails of the same kinds on all ranks, in the same "
        "order");
  on_all(comm, [&] {
    if (named.empty() || named.size() > transport::most_rails)
      throw error("rails '" + std::string(rails) + "': expected 1 to " +
                  std::to_string(transport::most_rails) + " rails");
  });
  packet_rails result(named.size());
  for (std::size_t k = 0; k < std::size(rail_openers); ++k) {
    std::vector<wanted_rail> wanted;
    for (std::size_t i = 0; i < named.size(); ++i)
      if (named[i].kind == k) wanted.push_back({int(i), named[i].name});
    if (wanted.empty()) continue;
    packet_rails opened = rail_openers[k](comm, over, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      result[std::size_t(wanted[i].index)] = std::move(opened[i]);
  }
  return result;
}

}  // namespace railpass::internal
