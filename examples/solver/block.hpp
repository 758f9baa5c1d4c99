// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// A rank's part of a grid of points, row by row in memory, with a layer of the neighbours' points
/// around it.
template <int D>
class block {
 public:
  using sizes = std::array<std::int64_t, std::size_t(D)>;

  /// That of a rank of `cart`, which was made by MPI_Cart_create; parts are as equal as possible.
  block(MPI_Comm cart, int rank, const sizes& grid) {
    std::array<int, std::size_t(D)> ranks{}, periods{}, place{};
    MPI_Cart_get(cart, D, ranks.data(), periods.data(), place.data());
    MPI_Cart_coords(cart, rank, D, place.data());
    std::int64_t stride = 1;
    for (std::size_t k = D; k-- > 0;) {
      first[k] = grid[k] * place[k] / ranks[k];
      points[k] = grid[k] * (place[k] + 1) / ranks[k] - first[k];
      strides[k] = stride;
      stride *= points[k] + 2;
      count *= std::size_t(points[k]);
    }
    memory = std::size_t(stride);
  }

  sizes first{};           ///< place of its first own point in the grid
  sizes points{};          ///< own ones in each dimension
  sizes strides{};         ///< in memory
  std::size_t count = 1;   ///< own points
  std::size_t memory = 0;  ///< elements, with the neighbours'

  /// Calls row(place, count) for each row of own points: where in memory it begins.
  template <class Row>
  void each_row(const Row& row) const {
    sizes at{};
    for (;;) {
      std::int64_t place = 0;
      for (std::size_t k = 0; k < D; ++k) place += (at[k] + 1) * strides[k];
      row(std::size_t(place), std::size_t(points[D - 1]));
      std::size_t k = D - 1;
      while (k > 0 && ++at[k - 1] == points[k - 1]) at[--k] = 0;
      if (k == 0) return;
    }
  }

  /// Own points without gaps.
  std::vector<double> packed(const std::vector<double>& field) const {
    std::vector<double> result;
    result.reserve(count);
    each_row([&](std::size_t place, std::size_t n) {
      result.insert(result.end(), &field[place], &field[place] + n);
    });
    return result;
  }
  void unpack(const std::vector<double>& packed, std::vector<double>& field) const {
    auto from = packed.begin();
    each_row([&](std::size_t place, std::size_t n) {
      std::copy_n(from, n, &field[place]);
      from += std::ptrdiff_t(n);
    });
  }
};
