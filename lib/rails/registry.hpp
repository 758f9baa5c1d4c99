// SPDX-License-Identifier: BSL-1.0
//
// All kinds of rails of rails.def, and how rails are opened.
#pragma once

#include "lib/rails/mpi/tags.hpp"
#include "railpass/transport/packet_rail.hpp"

#include <mpi.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

using packet_rails = std::vector<std::unique_ptr<transport::packet_rail>>;

/// A rail to be opened.
struct wanted_rail {
  int index = 0;     ///< identifies the rail for the sink
  std::string name;  ///< without its kind
};

// Opens all rails of a kind between all ranks of `comm`, in the given order. Collective; a failure
// on one rank throws error on all ranks. `comm` must live until the rails are open, and carries
// only collectives. Messages that rails send by MPI use the tags `over`.
#define RAILPASS_RAIL(kind, text)                                       \
  packet_rails open_##kind##_rails(MPI_Comm comm, const mpi_tags& over, \
                                   const std::vector<wanted_rail>& wanted);
#include "lib/rails/rails.def"
#undef RAILPASS_RAIL

using rail_opener = packet_rails (*)(MPI_Comm, const mpi_tags&, const std::vector<wanted_rail>&);
/// In the order of rail_kind_names.
inline constexpr rail_opener rail_openers[] = {
#define RAILPASS_RAIL(kind, text) open_##kind##_rails,
#include "lib/rails/rails.def"
#undef RAILPASS_RAIL
};

/// Opens the rails of a list such as "mpi,eth1,tcp:10.1.0.0/16". All ranks name the same number of
/// rails, with equal kinds in equal order. Collective; a failure on one rank throws error on all
/// ranks. `comm` must live until the rails are open, and carries only collectives. Messages that
/// rails send by MPI use the tags `over`.
packet_rails open_packet_rails(MPI_Comm comm, const mpi_tags& over, std::string_view rails);

}  // namespace railpass::internal
