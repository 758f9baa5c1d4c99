// SPDX-License-Identifier: BSL-1.0
//
// One call of a neighbourhood collective as the user made it.
#pragma once

#include "lib/call/call.hpp"
#include "railpass/base/names.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace railpass::internal {

enum class neighbor_function : std::uint8_t {
  all_to_all,
  all_to_allv,
  all_to_allw,
  all_gather,
  all_gatherv
};

/// Names of the function sets, in the order of neighbor_function.
inline constexpr std::array<std::string_view, 5> neighbor_function_names{
    "neighbor_all_to_all", "neighbor_all_to_allv", "neighbor_all_to_allw", "neighbor_all_gather",
    "neighbor_all_gatherv"};
constexpr std::string_view name_of(neighbor_function f) {
  return neighbor_function_names[std::size_t(f)];
}
/// By its name here or MPI's.
inline bool is_neighbor_function(std::string_view name) {
  return std::ranges::any_of(neighbor_function_names,
                             [&](std::string_view known) { return is_same_name(name, known); });
}

struct neighbor_call {
  neighbor_function op = neighbor_function::all_to_all;
  call_side send{};  ///< counts, displacements and types by destination, as the next one by source
  call_side receive{};
  MPI_Comm comm = MPI_COMM_NULL;
  bool is_large = false;  ///< the form with large counts: the MPI library's own is that, too

  /// Every destination is sent the same.
  bool sends_one_block() const {
    return op == neighbor_function::all_gather || op == neighbor_function::all_gatherv;
  }
};

/// The MPI library's own: blocking, and begun to be waited for. Return an MPI error code.
int run_native(const neighbor_call& c);
int start_native(const neighbor_call& c, MPI_Request* request);
/// The tuned one. Returns an MPI error code.
int run_call(neighbor_call& c);

}  // namespace railpass::internal
