// SPDX-License-Identifier: BSL-1.0
// The program of first.c with Boost.MPI's calls, tuned: boost::mpi in line 7 makes it plain
// Boost.MPI.
#include <cstdio>
#include <railpass/boost_mpi.hpp>

namespace mpi = railpass::boost_mpi;

int main(int argc, char** argv) {
  constexpr int features = 8192, rows = 4;
  const mpi::environment environment(argc, argv);
  const mpi::communicator world;
  const int ranks = world.size(), steps = argc > 1 ? std::atoi(argv[1]) : 20000;
  std::vector<double> data(rows * features), model(features), gradient(features), sum(features);
  for (int i = 0; i < rows * features; ++i) data[i] = (7 * i + 13 * world.rank()) % 101 / 101.0;
  for (int step = 0; step < steps; ++step) {
    const double* const row = data.data() + step % rows * features;
    const double error = std::inner_product(model.begin(), model.end(), row, -1.0);
    for (int i = 0; i < features; ++i) gradient[i] = error * row[i] / (features * ranks);
    mpi::all_reduce(world, gradient.data(), features, sum.data(), std::plus<double>());
    for (int i = 0; i < features; ++i) model[i] -= sum[i];
  }
  if (world.rank() == 0)
    std::printf("%d steps on %d ranks: model[1] = %.9f\n", steps, ranks, model[1]);
}
