// SPDX-License-Identifier: BSL-1.0
//
// Heat on a plate that is closed to a torus, cut into a grid of 2 x 2 ranks: the exchange of the
// blocks' sides and the kernel are chosen while the program runs. It ends with what an exchange
// written by hand gives, to the last bit:
//   mpirun -n 4 stencil
#include "railpass/function_set.hpp"
#include "railpass/halo_exchange.hpp"
#include "railpass/region.hpp"

#include <boost/mpi/communicator.hpp>
#include <boost/mpi/environment.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr int nx = 192, ny = 128, columns = ny + 2;  // of a rank; the sides are the neighbours'

// A Jacobi step, in tiles of so many columns, `unroll` rows at once.
void kernel(std::vector<double>& field, int tile, int unroll) {
  static std::vector<double> next(field.size());
  const auto relaxed = [&](int i) {
    const auto at = [&](int k) { return field[std::size_t(k)]; };
    return 0.25 * ((at(i - 1) + at(i + 1)) + (at(i - columns) + at(i + columns)));
  };
  for (int first = 1; first <= ny; first += tile)
    for (int row = 1; row <= nx; row += unroll)
      for (int column = first; column < std::min(first + tile, ny + 1); ++column)
        for (int r = row; r < std::min(row + unroll, nx + 1); ++r)
          next[std::size_t(r * columns + column)] = relaxed(r * columns + column);
  for (int row = 1; row <= nx; ++row)  // in place, as the exchange knows the field by its address
    std::copy_n(&next[std::size_t(row * columns + 1)], ny, &field[std::size_t(row * columns + 1)]);
}

std::vector<double> first_field(int rank) {
  std::vector<double> field(std::size_t((nx + 2) * columns));
  for (int i = 1; i <= nx; ++i)
    for (int k = 1; k <= ny; ++k)
      field[std::size_t(i * columns + k)] = (7 * i + 3 * k + rank) % 100;
  return field;
}

// The same exchange, written by hand.
void exchange_by_hand(MPI_Comm grid, MPI_Datatype side, double* field) {
  std::array<int, 2> rows{}, cols{};
  MPI_Cart_shift(grid, 0, 1, &rows[0], &rows[1]);
  MPI_Cart_shift(grid, 1, 1, &cols[0], &cols[1]);
  const auto at = [&](int i, int k) { return field + i * columns + k; };
  const auto none = MPI_STATUS_IGNORE;
  MPI_Sendrecv(at(nx, 1), ny, MPI_DOUBLE, rows[1], 0, at(0, 1), ny, MPI_DOUBLE, rows[0], 0, grid,
               none);
  MPI_Sendrecv(at(1, 1), ny, MPI_DOUBLE, rows[0], 1, at(nx + 1, 1), ny, MPI_DOUBLE, rows[1], 1,
               grid, none);
  MPI_Sendrecv(at(1, ny), 1, side, cols[1], 2, at(1, 0), 1, side, cols[0], 2, grid, none);
  MPI_Sendrecv(at(1, 1), 1, side, cols[0], 3, at(1, ny + 1), 1, side, cols[1], 3, grid, none);
}

std::vector<double> solve_by_hand(MPI_Comm comm, int rank) {
  const std::array<int, 2> shape{2, 2}, periods{1, 1};
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(comm, 2, shape.data(), periods.data(), 0, &grid);
  MPI_Datatype side = MPI_DATATYPE_NULL;
  MPI_Type_vector(nx, 1, columns, MPI_DOUBLE, &side);
  MPI_Type_commit(&side);
  std::vector<double> field = first_field(rank);
  for (int k = 0; k < 1000; ++k) {
    exchange_by_hand(grid, side, field.data());
    kernel(field, ny, 1);
  }
  MPI_Type_free(&side);
  MPI_Comm_free(&grid);
  return field;
}

bool is_own(std::size_t place) {
  const int row = int(place) / columns, column = int(place) % columns;
  return row >= 1 && row <= nx && column >= 1 && column <= ny;
}

}  // namespace

int main(int argc, char** argv) {
  boost::mpi::environment environment(argc, argv);
  boost::mpi::communicator world;
  if (world.size() != 4) {
    if (world.rank() == 0) std::cerr << "usage: mpirun -n 4 stencil\n";
    return 2;
  }
  std::vector<double> field = first_field(world.rank());

  railpass::function_set<void(std::vector<double>&)> step("step", world, {"tile", "unroll"});
  for (int tile : {8, 16, 32})
    for (int unroll : {1, 4})
      step.add("t" + std::to_string(tile) + "u" + std::to_string(unroll), {tile, unroll},
               [=](std::vector<double>& v) { kernel(v, tile, unroll); });
  railpass::cartesian<2> grid(world, {2, 2}, railpass::periodic);
  railpass::halo_exchange<2> halo(grid, field.data(), {nx, ny}, /*width=*/1);
  railpass::region solve("solve", world);
  for (int k = 0; k < 1000; ++k) {
    auto timed = solve.enter();
    halo();
    step(field);
  }
  const std::string best = step.winner(), exchange = halo.winner();

  const std::vector<double> expected = solve_by_hand(world, world.rank());
  int same = 1;
  for (std::size_t i = 0; i < field.size(); ++i)
    if (is_own(i) && field[i] != expected[i]) same = 0;
  MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, world);
  if (world.rank() == 0) {
    const auto said = [](const std::string& version) {
      return version.empty() ? std::string("not chosen yet") : version;
    };
    std::cout << "kernel: " << said(best) << ", exchange: " << said(exchange)
              << (same ? "; the field is the same as by hand\n"
                       : "; the field is not the same as by hand\n");
  }
  return same ? 0 : 1;
}
