// SPDX-License-Identifier: BSL-1.0
#include <boost/mpi/environment.hpp>

#include <iostream>
#include <railpass/all_reduce.hpp>
#include <railpass/broadcast.hpp>
#include <vector>

int main(int argc, char** argv) {
  boost::mpi::environment environment(argc, argv);
  boost::mpi::communicator world;
  std::vector<double> model(100'000, world.rank() == 0 ? 1.0 : 0.0), sum(model.size());
  for (int i = 0; i < 200; ++i) {
    railpass::broadcast(world, model.data(), int(model.size()), 0);
    railpass::all_reduce(world, model.data(), int(model.size()), sum.data(), std::plus<double>());
  }
  if (world.rank() == 0)
    std::cout << "sum " << sum[0] << ", by " << railpass::mpi::last_arm(world) << "\n";
}
