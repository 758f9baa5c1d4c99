// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/registry.hpp"

#include "lib/rails/agreement.hpp"
#include "railpass/base/error.hpp"
#include "railpass/transport/split.hpp"

#include <algorithm>
#include <iterator>

namespace railpass::internal {

namespace {

struct named_rail {
  std::size_t kind = 0;
  std::string name;
};

std::size_t kind_named(std::string_view name) {
  return std::size_t(std::ranges::find(rail_kinds, name, &rail_kind::name) - rail_kinds);
}

std::vector<named_rail> parse(std::string_view rails) {
  std::vector<named_rail> result;
  while (!rails.empty()) {
    const std::string_view word = rails.substr(0, rails.find(','));
    rails.remove_prefix(std::min(word.size() + 1, rails.size()));
    if (word.empty()) continue;
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::size_t kind = kind_named(word.substr(0, colon));
    if (kind < std::size(rail_kinds))
      result.push_back({kind, std::string(word.substr(std::min(colon + 1, word.size())))});
    else
      result.push_back({kind_named("tcp"), std::string(word)});
  }
  return result;
}

}  // namespace

std::string rails_mark(std::string_view rails) {
  const bool only_mpi = std::ranges::all_of(
      parse(rails), [](const named_rail& r) { return rail_kinds[r.kind].name == "mpi"; });
  return only_mpi ? "" : std::string(rails);
}

packet_rails open_packet_rails(MPI_Comm comm, const mpi_tags& over, std::string_view rails) {
  const std::vector<named_rail> named = parse(rails);
  long kinds = 1;  // digits to a base above their number
  for (const named_rail& r : named) kinds = (kinds * 8 + long(r.kind) + 1) % 1000000007;
  static_assert(std::size(rail_kinds) < 7);
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
  for (std::size_t k = 0; k < std::size(rail_kinds); ++k) {
    std::vector<wanted_rail> wanted;
    for (std::size_t i = 0; i < named.size(); ++i)
      if (named[i].kind == k) wanted.push_back({int(i), named[i].name});
    if (wanted.empty()) continue;
    packet_rails opened = rail_kinds[k].open(comm, over, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      result[std::size_t(wanted[i].index)] = std::move(opened[i]);
  }
  return result;
}

}  // namespace railpass::internal
