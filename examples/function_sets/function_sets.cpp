// SPDX-License-Identifier: BSL-1.0
//
// Six versions of a kernel, of which the fastest is found while a solver runs:
//   mpirun -n 4 function_sets
#include "railpass/function_set.hpp"
#include "railpass/region.hpp"

#include <boost/mpi/communicator.hpp>
#include <boost/mpi/environment.hpp>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr std::size_t rows = 512, columns = 512;

// A Jacobi step on rows x columns values, in tiles of so many columns, `unroll` rows at once.
void kernel(std::vector<double>& field, int tile, int unroll) {
  static std::vector<double> next(field.size());
  const auto relaxed = [&](std::size_t i) {
    return 0.25 * (field[i - 1] + field[i + 1] + field[i - columns] + field[i + columns]);
  };
  const std::size_t width = std::size_t(tile), together = std::size_t(unroll);
  for (std::size_t first = 1; first < columns - 1; first += width)
    for (std::size_t row = 1; row < rows - 1; row += together)
      for (std::size_t column = first; column < std::min(first + width, columns - 1); ++column)
        for (std::size_t r = row; r < std::min(row + together, rows - 1); ++r)
          next[r * columns + column] = relaxed(r * columns + column);
  std::swap(field, next);
}

}  // namespace

int main(int argc, char** argv) {
  boost::mpi::environment environment(argc, argv);
  boost::mpi::communicator world;
  std::vector<double> field(rows * columns, 1.0);

  railpass::function_set<void(std::vector<double>&)> step("step", world, {"tile", "unroll"});
  for (int tile : {8, 16, 32})
    for (int unroll : {1, 4})
      step.add("t" + std::to_string(tile) + "u" + std::to_string(unroll), {tile, unroll},
               [=](std::vector<double>& v) { kernel(v, tile, unroll); });
  railpass::region solve("solve", world);
  for (int k = 0; k < 1000; ++k) {
    auto timed = solve.enter();
    step(field);
  }
  const std::string best = step.winner();
  if (world.rank() == 0)
    std::cout << (best.empty() ? "no version is chosen yet" : "the best version is " + best)
              << '\n';
}
