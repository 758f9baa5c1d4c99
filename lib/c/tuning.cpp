// SPDX-License-Identifier: BSL-1.0
#include "lib/c/calls.hpp"
#include "lib/call/datatype.hpp"
#include "railpass/cartesian.hpp"
#include "railpass/detail/set_call.hpp"
#include "railpass/halo_exchange.hpp"
#include "railpass/railpass.h"
#include "railpass/region.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace railpass;
using internal::c::code_of, internal::c::require, internal::c::comm_of, internal::c::type_of;

struct railpass_set_s {
  railpass::detail::set_request request;
  std::vector<std::string> versions{};
  std::optional<railpass::detail::set_call> call{};
};

struct railpass_region_s {
  region of;
  std::optional<region::entry> entered{};
};

struct railpass_halo_s {
  mpi::halo exchange;
};

namespace {

constexpr int most_dimensions = 64;

std::vector<std::string> texts(int count, const char* const* list, const char* what) {
  require(count >= 0 && (count == 0 || list), what);
  std::vector<std::string> result;
  for (int i = 0; i < count; ++i) {
    require(list[i], what);
    result.emplace_back(list[i]);
  }
  return result;
}

attribute_value value_of(std::string_view text) {
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto [at, code] = std::from_chars(text.data(), end, whole);
      code == std::errc{} && at == end)
    return whole;
  double number = 0;
  if (const auto [at, code] = std::from_chars(text.data(), end, number);
      code == std::errc{} && at == end && std::isfinite(number))
    return number;
  return std::string(text);
}

void require_dimensions(int dimensions, const char* what) {
  require(dimensions >= 1 && dimensions <= most_dimensions, what);
}

// Row by row, without gaps.
array_layout layout_of(void* data, std::span<const std::int64_t> interior,
                       std::span<const std::int64_t> width, MPI_Datatype type) {
  MPI_Count lower = 0, extent = 0, bytes = 0;
  PMPI_Type_get_extent_x(type, &lower, &extent);
  PMPI_Type_size_x(type, &bytes);
  array_layout layout{.data = data, .element_bytes = extent};
  // Elements without gaps are copied as they are.
  if (!internal::is_predefined(type) || lower != 0 || extent != bytes) layout.element = type;
  layout.extents.resize(interior.size());
  layout.strides_bytes.resize(interior.size());
  std::int64_t stride_bytes = extent;
  for (std::size_t k = interior.size(); k-- > 0;) {
    layout.extents[k] = interior[k] + 2 * width[k];
    layout.strides_bytes[k] = stride_bytes;
    stride_bytes *= layout.extents[k];
  }
  return layout;
}

// A request of a handle, or an error that names the function.
template <class Handle>
Handle& of(Handle* handle, const char* what) {
  require(handle, what);
  return *handle;
}

}  // namespace

// ---- function sets

int railpass_set_create(const char* name, MPI_Comm comm, int num_attributes,
                        const char* const* attributes, int num_sizes, const int64_t* shape,
                        int num_features, const int64_t* features, railpass_set* set) {
  if (set) *set = nullptr;
  return code_of([&] {
    require(name && set, "railpass_set_create: expected a name and a place for the set");
    require(num_sizes >= 0 && (num_sizes == 0 || shape),
            "railpass_set_create: expected num_sizes sizes");
    require(num_features >= 0 && (num_features == 0 || features),
            "railpass_set_create: expected num_features features");
    function_set_options options;
    if (num_sizes > 0) options.shape.assign(shape, shape + num_sizes);
    if (num_features > 0) options.features.assign(features, features + num_features);
    *set = new railpass_set_s{
        {name, comm,
         texts(num_attributes, attributes, "railpass_set_create: expected num_attributes names"),
         options}};
  });
}
int railpass_set_create_f(const char* name, railpass_fint comm, int num_attributes,
                          const char* const* attributes, int num_sizes, const int64_t* shape,
                          int num_features, const int64_t* features, railpass_set* set) {
  return railpass_set_create(name, comm_of(comm), num_attributes, attributes, num_sizes, shape,
                             num_features, features, set);
}

int railpass_set_add(railpass_set set, const char* version, const char* const* values) {
  return code_of([&] {
    auto& [request, versions, call] = of(set, "railpass_set_add: expected a set");
    require(version, "railpass_set_add: expected a name of the version");
    std::vector<attribute_value> of_attributes;
    for (const std::string& text : texts(int(request.attributes().size()), values,
                                         "railpass_set_add: expected a value of each attribute"))
      of_attributes.push_back(value_of(text));
    versions.reserve(versions.size() + 1);
    request.add(version, std::move(of_attributes));
    versions.emplace_back(version);
  });
}

int railpass_set_begin(railpass_set set, int* version) {
  return code_of([&] {
    auto& [request, versions, call] = of(set, "railpass_set_begin: expected a set");
    require(version, "railpass_set_begin: expected a place for the version");
    require(!call, "railpass_set_begin: the call before has not ended (railpass_set_end)");
    call.emplace(request);
    *version = int(call->version());
  });
}

int railpass_set_end(railpass_set set) {
  return code_of([&] {
    auto& call = of(set, "railpass_set_end: expected a set").call;
    require(call.has_value(), "railpass_set_end: no call has begun (railpass_set_begin)");
    call.reset();
  });
}

int railpass_set_winner(railpass_set set, int* version) {
  return code_of([&] {
    const auto& [request, versions, call] = of(set, "railpass_set_winner: expected a set");
    require(version, "railpass_set_winner: expected a place for the version");
    const auto found = std::ranges::find(versions, request.winner());
    *version = found == versions.end() ? -1 : int(found - versions.begin());
  });
}

int railpass_set_free(railpass_set* set) {
  return code_of([&] {
    if (!set || !*set) return;
    require(!(*set)->call, "railpass_set_free: a call has not ended (railpass_set_end)");
    delete std::exchange(*set, nullptr);
  });
}

// ---- regions

int railpass_region_create(const char* name, MPI_Comm comm, railpass_region* region) {
  if (region) *region = nullptr;
  return code_of([&] {
    require(name && region, "railpass_region_create: expected a name and a place for the region");
    *region = new railpass_region_s{{name, comm}};
  });
}
int railpass_region_create_f(const char* name, railpass_fint comm, railpass_region* region) {
  return railpass_region_create(name, comm_of(comm), region);
}

int railpass_region_begin(railpass_region region) {
  return code_of([&] {
    auto& [of_all, entered] = of(region, "railpass_region_begin: expected a region");
    require(!entered, "railpass_region_begin: the region has not ended (railpass_region_end)");
    // An entry stays where it is made.
    struct made_in_place {
      railpass::region& from;
      operator railpass::region::entry() const { return from.enter(); }
    };
    entered.emplace(made_in_place{of_all});
  });
}

int railpass_region_end(railpass_region region) {
  return code_of([&] {
    auto& entered = of(region, "railpass_region_end: expected a region").entered;
    require(entered.has_value(),
            "railpass_region_end: the region has not begun (railpass_region_begin)");
    entered.reset();
  });
}

int railpass_region_free(railpass_region* region) {
  return code_of([&] {
    if (!region || !*region) return;
    require(!(*region)->entered,
            "railpass_region_free: the region has not ended (railpass_region_end)");
    delete std::exchange(*region, nullptr);
  });
}

// ---- halo exchange

int railpass_halo_create(MPI_Comm comm, int dimensions, const int* grid, const int* wraps,
                         int num_fields, void* const* fields, const int64_t* interior,
                         const int64_t* width, MPI_Datatype type, int corners,
                         railpass_halo* halo) {
  if (halo) *halo = nullptr;
  return code_of([&] {
    require_dimensions(dimensions, "railpass_halo_create: expected 1 to 64 dimensions");
    require(grid && wraps && interior && width && halo,
            "railpass_halo_create: expected a grid, what is periodic, interior, width and a place "
            "for the exchange");
    require(num_fields >= 1 && fields, "railpass_halo_create: expected num_fields fields");
    require(type != MPI_DATATYPE_NULL, "railpass_halo_create: expected a datatype");
    const auto n = std::size_t(dimensions);
    mpi::halo_arguments all{.comm = comm};
    all.grid.extents.assign(grid, grid + n);
    for (std::size_t k = 0; k < n; ++k) all.grid.periodic.push_back(wraps[k] != 0);
    all.widths.assign(width, width + n);
    for (int f = 0; f < num_fields; ++f)
      all.fields.push_back(layout_of(fields[f], {interior, n}, {width, n}, type));
    all.options.corners = corners != 0;
    *halo = new railpass_halo_s{mpi::halo(all)};
  });
}
int railpass_halo_create_f(railpass_fint comm, int dimensions, const int* grid, const int* wraps,
                           int num_fields, void* const* fields, const int64_t* interior,
                           const int64_t* width, railpass_fint type, int corners,
                           railpass_halo* halo) {
  return railpass_halo_create(comm_of(comm), dimensions, grid, wraps, num_fields, fields, interior,
                              width, type_of(type), corners, halo);
}

int railpass_halo_exchange(railpass_halo halo) {
  return code_of(
      [&] { of(halo, "railpass_halo_exchange: expected an exchange").exchange.exchange(); });
}
int railpass_halo_begin(railpass_halo halo) {
  return code_of([&] { of(halo, "railpass_halo_begin: expected an exchange").exchange.begin(); });
}
int railpass_halo_end(railpass_halo halo) {
  return code_of([&] { of(halo, "railpass_halo_end: expected an exchange").exchange.end(); });
}

int railpass_halo_winner(railpass_halo halo, char* name, int size) {
  return code_of([&] {
    const auto& exchange = of(halo, "railpass_halo_winner: expected an exchange").exchange;
    require(name && size > 0, "railpass_halo_winner: expected room for a name");
    const std::string winner = exchange.winner();
    const std::size_t length = std::min(winner.size(), std::size_t(size) - 1);
    std::memcpy(name, winner.data(), length);
    name[length] = 0;
  });
}

int railpass_halo_free(railpass_halo* halo) {
  return code_of([&] {
    if (halo) delete std::exchange(*halo, nullptr);
  });
}

int railpass_suggest_grid(MPI_Comm comm, int dimensions, const int64_t* global, const int* wraps,
                          int64_t width, int64_t element_bytes, int corners, int* grid) {
  return code_of([&] {
    require_dimensions(dimensions, "railpass_suggest_grid: expected 1 to 8 dimensions");
    require(
        global && wraps && grid,
        "railpass_suggest_grid: expected what is global and periodic, and a place for the grid");
    const auto n = std::size_t(dimensions);
    std::vector<bool> sides;
    for (std::size_t k = 0; k < n; ++k) sides.push_back(wraps[k] != 0);
    std::ranges::copy(
        mpi::suggest_grid(
            comm, {global, n}, sides,
            {.width = width, .element_bytes = element_bytes, .corners = corners != 0}),
        grid);
  });
}
int railpass_suggest_grid_f(railpass_fint comm, int dimensions, const int64_t* global,
                            const int* wraps, int64_t width, int64_t element_bytes, int corners,
                            int* grid) {
  return railpass_suggest_grid(comm_of(comm), dimensions, global, wraps, width, element_bytes,
                               corners, grid);
}
