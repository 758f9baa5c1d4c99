// SPDX-License-Identifier: BSL-1.0
//
// Lists of rails, such as "mpi,eth1,tcp:10.1.0.0/16", in words. Nothing here is linked with MPI.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

inline constexpr std::string_view rail_kind_names[] = {
#define RAILPASS_RAIL(kind, text) #kind,
#include "lib/rails/rails.def"
#undef RAILPASS_RAIL
};

struct named_rail {
  std::size_t kind = 0;  ///< index into rail_kind_names
  std::string name;      ///< without its kind
};

/// A rail without a kind is a tcp rail.
std::vector<named_rail> parse_rails(std::string_view rails);

/// The mark of measurements over these rails; empty for MPI's messages alone, for which collectives
/// need no open rail.
std::string rails_mark(std::string_view rails);

}  // namespace railpass::internal
