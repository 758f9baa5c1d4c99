// SPDX-License-Identifier: BSL-1.0
//
// Calls of all_reduce that follow a plan, and calls with the plan's variant pinned, in turns in one
// process: RAILPASS_PLAN=FILE mpirun -n 2 overhead_planned BYTES CALLS VARIANT plan|pinned. The
// last word says which of them makes the first call. Rank 0 prints one JSON object: the seconds of
// each call of either kind, of its slowest rank, behind a barrier. Calls on a third communicator
// come first, so that no measured call does what a process does once.
#include "railpass/mpi.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

MPI_Comm copy_of_world() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  railpass::mpi::start_tuning(comm);
  return comm;
}

void print(const char* name, const std::vector<double>& seconds) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < seconds.size(); ++i)
    std::printf("%s%.9f", i == 0 ? "" : ", ", seconds[i]);
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  const int count = std::atoi(argv[1]) / int(sizeof(int)), calls = std::atoi(argv[2]);
  const int first = std::strcmp(argv[4], "plan") == 0 ? 0 : 1;
  const std::array<MPI_Comm, 3> comms{copy_of_world(), copy_of_world(), copy_of_world()};
  std::vector<int> in(std::size_t(count), 1), out(in);
  for (int i = 0; i < 10; ++i)
    railpass::mpi::all_reduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comms[2],
                              railpass::collect(railpass::use(argv[3])));
  std::array<std::vector<double>, 2> seconds{};
  for (int i = 0; i < 2 * calls; ++i) {
    const int kind = (i + i / 2 + first) % 2;  // each goes first by turns
    PMPI_Barrier(MPI_COMM_WORLD);
    const double begin_s = MPI_Wtime();
    if (kind == 0)
      railpass::mpi::all_reduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comms[0]);
    else
      railpass::mpi::all_reduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comms[1],
                                railpass::collect(railpass::use(argv[3])));
    seconds[std::size_t(kind)].push_back(MPI_Wtime() - begin_s);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (std::vector<double>& s : seconds)
    PMPI_Reduce(rank == 0 ? MPI_IN_PLACE : s.data(), s.data(), calls, MPI_DOUBLE, MPI_MAX, 0,
                MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("{");
    print("plan", seconds[0]);
    std::printf(", ");
    print("pinned", seconds[1]);
    std::printf("}\n");
  }
  for (MPI_Comm comm : comms) MPI_Comm_free(&comm);
  MPI_Finalize();
}
