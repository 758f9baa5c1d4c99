// SPDX-License-Identifier: BSL-1.0
//
// All kinds of rails of rails.def, by name, and how rails are opened.
#pragma once

#include "lib/rails/mpi/place.hpp"
#include "railpass/transport/packet_rail.hpp"

#include <mpi.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

using packet_rails = std::vector<std::unique_ptr<transport::packet_rail>>;

/// A rail that is to be opened.
struct wanted_rail {
  int index = 0;     ///< what the sink will know it by
  std::string name;  ///< without its kind
};

// Opens all rails of a kind between all ranks of `comm`, in the order given. Collective; what fails
// on one rank is thrown as error on all. `comm` is needed until they are open, and only collectives
// are called on it; `over` is where what a rail sends by MPI goes.
#define RAILPASS_RAIL(kind, text)                                        \
  packet_rails open_##kind##_rails(MPI_Comm comm, const mpi_place& over, \
                                   const std::vector<wanted_rail>& wanted);
#include "lib/rails/rails.def"
#undef RAILPASS_RAIL

struct rail_kind {
  std::string_view name;
  std::string_view text;
  packet_rails (*open)(MPI_Comm, const mpi_place&, const std::vector<wanted_rail>&);
};

#define RAILPASS_RAIL(kind, text) rail_kind{#kind, text, open_##kind##_rails},
inline constexpr rail_kind rail_kinds[] = {
#include "lib/rails/rails.def"
};
#undef RAILPASS_RAIL

/// What measurements of messages over these rails are marked with; empty for MPI's messages alone,
/// which collectives send without any rail being opened.
std::string rails_mark(std::string_view rails);

/// Opens the rails of a list such as "mpi,eth1,tcp:10.1.0.0/16". All ranks name as many, of the
/// same kinds in the same order. Collective; what fails on one rank is thrown as error on all.
/// `comm` is needed until they are open, and only collectives are called on it; `over` is where
/// what a rail sends by MPI goes.
packet_rails open_packet_rails(MPI_Comm comm, const mpi_place& over, std::string_view rails);

}  // namespace railpass::internal
