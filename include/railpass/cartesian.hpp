// SPDX-License-Identifier: BSL-1.0
//
// A communicator's ranks as a grid, over which D-dimensional data are distributed.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/base/extents.hpp"
#include "railpass/base/process_grid.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass {

/// Every dimension is periodic.
struct periodic_in_all {};
inline constexpr periodic_in_all periodic{};

/// Says for each dimension whether it is periodic: `periodic` (all), {true, false}, or {} (none).
template <int D>
class periodicity {
 public:
  constexpr periodicity() = default;
  constexpr periodicity(periodic_in_all) { in_.fill(true); }
  template <std::same_as<bool>... B>
  requires(sizeof...(B) == D) constexpr periodicity(B... in) : in_{in...} {}

  constexpr bool operator[](int k) const { return in_[std::size_t(k)]; }

 private:
  std::array<bool, std::size_t(D)> in_{};
};

/// Describes the data to distribute, for cartesian::suggest.
struct suggestion_options {
  std::size_t struct_bytes = sizeof(suggestion_options);  ///< see options.hpp
  std::int64_t width = 1;                                 ///< halo elements at each side
  std::int64_t element_bytes = 8;                         ///< of all fields together
  bool corners = false;       ///< also neighbours across edges and corners
  std::string name = "halo";  ///< halo_options::name of the planned exchange
};

namespace mpi {

/// cartesian<D>::suggest for 1 to 8 dimensions. Collective over `comm`.
/// @return the ranks in each dimension
/// @throws railpass::error on every rank if an argument is invalid
std::vector<int> suggest_grid(MPI_Comm comm, std::span<const std::int64_t> global,
                              const std::vector<bool>& periodic, const suggestion_options& options);

/// Returns the grid of a communicator made by MPI_Cart_create. Local.
/// @throws railpass::error if `comm` has no Cartesian topology of `dimensions` dimensions
process_grid grid_of(MPI_Comm comm, int dimensions);

}  // namespace mpi

/// A grid of all ranks of a communicator in row-major order: the last coordinate varies fastest, as
/// with MPI_Cart_create without reordering. The communicator stays the caller's. All members are
/// local except suggest().
template <int D>
class cartesian {
 public:
  using coordinates_type = std::array<int, std::size_t(D)>;

  /// Creates a grid on `comm`, which may also be a Boost.MPI communicator. Local.
  /// @param shape ranks in each dimension, equal on all ranks
  /// @throws railpass::error if the product of `shape` differs from the size of `comm`
  cartesian(MPI_Comm comm, extents<D> shape, periodicity<D> in = {}) : comm_(comm) {
    std::int64_t product = 1;
    std::string written;
    for (int k = 0; k < D; ++k) {
      if (shape[k] < 1 || shape[k] > size())
        throw error("cartesian: " + std::to_string(shape[k]) + " ranks in dimension " +
                    std::to_string(k) + "; expected 1 to " + std::to_string(size()));
      product = product > size() ? product : product * shape[k];
      written += (k ? " x " : "") + std::to_string(shape[k]);
      grid_.extents.push_back(int(shape[k]));
      grid_.periodic.push_back(in[k]);
    }
    if (product != size())
      throw error("cartesian: " + written + " ranks; the communicator has " +
                  std::to_string(size()));
  }
  /// Returns the grid of a communicator made by MPI_Cart_create. Local.
  /// @throws railpass::error if `comm` has no Cartesian topology of D dimensions
  static cartesian of(MPI_Comm comm) { return cartesian(comm, mpi::grid_of(comm, D)); }
  /// Returns the grid with the lowest estimated cost of a halo exchange. Collective over `comm`;
  /// the arguments must be equal, and all ranks get the same grid.
  ///
  /// The estimate comes from the machine model (RAILPASS_PROFILE, else generic constants), from
  /// which ranks share a host, and from the times of earlier exchanges of that name with similar
  /// messages, in this run or earlier runs.
  /// @param global elements of the whole data in each dimension, cut into blocks as equal as
  ///   possible
  /// @throws railpass::error on every rank if an argument is invalid
  static cartesian suggest(MPI_Comm comm, extents<D> global, periodicity<D> in = {},
                           const suggestion_options& options = {}) {
    std::vector<bool> sides;
    for (int k = 0; k < D; ++k) sides.push_back(in[k]);
    const std::array<std::int64_t, std::size_t(D)> wanted = global.values();
    return cartesian(comm, {mpi::suggest_grid(comm, wanted, sides, options), sides});
  }

  MPI_Comm comm() const { return comm_; }
  const process_grid& grid() const { return grid_; }
  int extent(int dimension) const { return grid_.extents[std::size_t(dimension)]; }
  bool is_periodic(int dimension) const { return grid_.periodic[std::size_t(dimension)]; }
  int size() const {
    int size = 0;
    MPI_Comm_size(comm_, &size);
    return size;
  }
  int rank() const {
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    return rank;
  }

  coordinates_type coordinates(int rank) const {
    const std::vector<int> found = grid_.coordinates(rank);
    coordinates_type result{};
    std::copy(found.begin(), found.end(), result.begin());
    return result;
  }
  coordinates_type coordinates() const { return coordinates(rank()); }
  /// Returns the rank at `coordinates`. Coordinates beyond a side wrap round in a periodic
  /// dimension; otherwise the result is MPI_PROC_NULL.
  int rank_at(const coordinates_type& coordinates) const {
    return named(grid_.rank_at(coordinates));
  }
  /// Returns the rank `steps` away from this rank, for example {-1, 0} or, diagonally, {1, 1};
  /// MPI_PROC_NULL beyond a side that is not periodic.
  int neighbour(const coordinates_type& steps) const {
    return named(grid_.neighbour(rank(), steps));
  }

 private:
  cartesian(MPI_Comm comm, process_grid grid) : comm_(comm), grid_(std::move(grid)) {}
  static int named(int rank) { return rank == process_grid::no_rank ? MPI_PROC_NULL : rank; }

  MPI_Comm comm_;
  process_grid grid_;
};

}  // namespace railpass
