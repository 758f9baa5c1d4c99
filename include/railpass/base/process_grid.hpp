// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace railpass {

/// A grid of ranks in row-major order (the last coordinate varies fastest), as MPI_Cart_create
/// places them. railpass/cartesian.hpp has a grid over a communicator.
struct process_grid {
  static constexpr int no_rank = -1;

  std::vector<int> extents{};
  std::vector<bool> periodic{};  ///< by dimension: the last rank's neighbour is the first one

  std::vector<int> coordinates(int rank) const {
    std::vector<int> result(extents.size());
    for (std::size_t k = extents.size(); k-- > 0; rank /= extents[k]) result[k] = rank % extents[k];
    return result;
  }
  /// Coordinates beyond a side wrap round in a periodic dimension; else the result is `no_rank`.
  int rank_at(std::span<const int> coordinates) const {
    int rank = 0;
    for (std::size_t k = 0; k < extents.size(); ++k) {
      int at = coordinates[k];
      if (at < 0 || at >= extents[k]) {
        if (!periodic[k]) return no_rank;
        at = (at % extents[k] + extents[k]) % extents[k];
      }
      rank = rank * extents[k] + at;
    }
    return rank;
  }
  /// The rank `steps` away in each dimension.
  int neighbour(int rank, std::span<const int> steps) const {
    std::vector<int> at = coordinates(rank);
    for (std::size_t k = 0; k < at.size(); ++k) at[k] += steps[k];
    return rank_at(at);
  }
  friend bool operator==(const process_grid&, const process_grid&) = default;
};

/// The steps to the neighbours in these dimensions (other dimensions are not cut): first across
/// faces, the lower and then the upper face of each dimension, then with `corners` across edges and
/// corners. The result contains the opposite of each step.
inline std::vector<std::vector<int>> steps_to_neighbours(const std::vector<bool>& dimensions,
                                                         bool corners) {
  std::vector<std::vector<int>> all;
  const std::size_t d = dimensions.size();
  for (std::size_t k = 0; k < d; ++k)
    for (const int side : {-1, 1}) {
      if (!dimensions[k]) continue;
      all.emplace_back(d, 0)[k] = side;
    }
  if (!corners) return all;
  std::vector<int> steps(d, -1);
  const auto next = [&] {  // counts in digits -1, 0, 1
    for (std::size_t k = d; k-- > 0;) {
      if (steps[k]++ < 1) return true;
      steps[k] = -1;
    }
    return false;
  };
  do {
    int taken = 0;
    for (std::size_t k = 0; k < d; ++k) {
      if (steps[k] != 0 && !dimensions[k]) taken = -int(d) * 2;
      taken += steps[k] != 0;
    }
    if (taken > 1) all.push_back(steps);
  } while (next());
  return all;
}

/// Reduces lengths by direction, in the order of steps_to_neighbours(): the longer length of each
/// two opposite faces, then edges and corners in pairs. The result has at most `most` numbers; the
/// last number covers all remaining directions.
inline std::vector<std::int64_t> longest_by_side(std::span<const std::int64_t> lengths,
                                                 std::size_t most) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i + 1 < lengths.size(); i += 2) {
    const std::int64_t longer = std::max(lengths[i], lengths[i + 1]);
    if (result.size() < most)
      result.push_back(longer);
    else
      result.back() += longer;
  }
  return result;
}

}  // namespace railpass
