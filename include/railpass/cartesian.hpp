// SPDX-License-Identifier: BSL-1.0
//
// A communicator's ranks as a grid, over which data of D dimensions are distributed.
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

/// Which dimensions are periodic: none, `periodic` or {true, false}.
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

/// What is to be distributed, for cartesian::suggest.
struct suggestion_options {
  std::size_t struct_bytes = sizeof(suggestion_options);  ///< see options.hpp
  std::int64_t width = 1;          ///< elements at each side that neighbours need
  std::int64_t element_bytes = 8;  ///< of all fields together
  bool corners = false;            ///< neighbours across edges and corners, too
  std::string name = "halo";       ///< of the exchange that will be made: halo_options::name
};

namespace mpi {

/// cartesian<D>::suggest for any number of dimensions: how many ranks in each. Collective over
/// `comm`; throws error, on all ranks alike.
std::vector<int> suggest_grid(MPI_Comm comm, std::span<const std::int64_t> global,
                              const std::vector<bool>& periodic, const suggestion_options& options);

/// The grid of a communicator that MPI_Cart_create has made, of so many dimensions. Local; throws
/// error if it is none.
process_grid grid_of(MPI_Comm comm, int dimensions);

}  // namespace mpi

/// A grid of all ranks of a communicator, row by row: the last coordinate varies fastest, as with
/// MPI_Cart_create that does not reorder. The communicator stays the caller's. All members are
/// local but `suggest`.
template <int D>
class cartesian {
 public:
  using coordinates_type = std::array<int, std::size_t(D)>;

  /// `shape` ranks in each dimension, equal on all ranks. Boost.MPI's communicators are taken, too.
  /// Throws error if these are not as many as the communicator has.
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
  /// The grid of a communicator that MPI_Cart_create has made. Throws error if it has none of D
  /// dimensions.
  static cartesian of(MPI_Comm comm) { return cartesian(comm, mpi::grid_of(comm, D)); }
  /// The grid in which data of `global` elements, cut into blocks as equal as possible, cost the
  /// least to exchange: as the machine's model says (RAILPASS_PROFILE, else generic constants),
  /// which ranks share a host, what messages of each size take between hosts and within; and as
  /// exchanges of that name with much the same messages took, in this run or earlier ones.
  /// Collective over `comm`, with equal arguments; all ranks get the same. Throws error, on all
  /// ranks alike, if an argument is wrong.
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
  /// Coordinates beyond a side are taken round if that dimension is periodic; else MPI_PROC_NULL.
  int rank_at(const coordinates_type& coordinates) const {
    return named(grid_.rank_at(coordinates));
  }
  /// Who is that many steps from this rank in each dimension, as {-1, 0} or, diagonally, {1, 1};
  /// MPI_PROC_NULL: nobody.
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
