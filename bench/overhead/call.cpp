// SPDX-License-Identifier: BSL-1.0
//
// What railpass adds to a call, without the network: the MPI library's broadcast is replaced by a
// function that returns at once. Run on 2 ranks (mpirun -n 2); all ranks make the same calls.
#include "railpass/mpi.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr int calls = 200'000, repetitions = 21;

template <class Call>
void measure(const char* name, Call&& one) {
  std::array<double, repetitions> ns{};
  for (double& result : ns) {
    const double begin_s = now_s();
    for (int i = 0; i < calls; ++i) one();
    result = (now_s() - begin_s) / calls * 1e9;
  }
  std::sort(ns.begin(), ns.end());
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    std::printf("%-44s median %6.1f ns, quartiles %6.1f .. %6.1f (%d x %d calls)\n", name,
                ns[repetitions / 2], ns[repetitions / 4], ns[repetitions * 3 / 4], repetitions,
                calls);
}

MPI_Comm tuned_communicator(const char* policy) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  railpass::mpi::configure(comm, "policy", policy);
  railpass::mpi::start_tuning(comm);
  return comm;
}

}  // namespace

// Called instead of the MPI library's, here and in librailpass.
extern "C" int PMPI_Bcast(void*, int, MPI_Datatype, int, MPI_Comm) { return MPI_SUCCESS; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  char value = 0;
  MPI_Comm native = tuned_communicator("native");
  measure("the empty broadcast itself", [&] { PMPI_Bcast(&value, 1, MPI_CHAR, 0, native); });
  measure("native arm, settled, 1 in 64 calls timed",
          [&] { railpass::mpi::broadcast(&value, 1, MPI_CHAR, 0, native); });
  measure("native arm, pinned by an option", [&] {
    railpass::mpi::broadcast(&value, 1, MPI_CHAR, 0, native,
                             railpass::collect(railpass::use("native")));
  });
  MPI_Comm_free(&native);
  MPI_Finalize();
}
