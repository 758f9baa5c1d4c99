// SPDX-License-Identifier: BSL-1.0
// A program whose own headers have names that headers of railpass have, too.
#include <options.hpp>
#include <railpass/mpi.hpp>

int main(int argc, char** argv) {
  static_assert(mine);
  MPI_Init(&argc, &argv);
  MPI_Finalize();
}
