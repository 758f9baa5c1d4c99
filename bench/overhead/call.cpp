// SPDX-License-Identifier: BSL-1.0
//
// What railpass adds to a call, without the network: the MPI library's own calls are replaced by
// functions that return at once. Run on 2 ranks (mpirun -n 2); all ranks make the same calls.
#include "railpass/mpi.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <dlfcn.h>

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

// Where the first calls of a communicator go, as what they bring is looked at.
using neighbor_function = int (*)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype,
                                  MPI_Comm);
neighbor_function begun_by = nullptr;

}  // namespace

// Called instead of the MPI library's, here and in librailpass.
extern "C" int PMPI_Bcast(void*, int, MPI_Datatype, int, MPI_Comm) { return MPI_SUCCESS; }
extern "C" int PMPI_Neighbor_alltoall(const void* send, int send_count, MPI_Datatype send_type,
                                      void* receive, int receive_count, MPI_Datatype receive_type,
                                      MPI_Comm comm) {
  return begun_by
             ? begun_by(send, send_count, send_type, receive, receive_count, receive_type, comm)
             : MPI_SUCCESS;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  char value = 0;
  std::array<char, 64> values{};
  MPI_Comm native = tuned_communicator("native");
  measure("the empty broadcast itself", [&] { PMPI_Bcast(&value, 1, MPI_CHAR, 0, native); });
  measure("native arm, settled, 1 in 64 calls timed",
          [&] { railpass::mpi::broadcast(&value, 1, MPI_CHAR, 0, native); });
  unsigned call = 0;
  measure("the same, other arguments each time", [&] {
    railpass::mpi::broadcast(values.data(), 1 + int(call++ % values.size()), MPI_CHAR, 0, native);
  });
  measure("native arm, pinned by an option", [&] {
    railpass::mpi::broadcast(&value, 1, MPI_CHAR, 0, native,
                             railpass::collect(railpass::use("native")));
  });
  MPI_Comm_free(&native);

  int size = 0;
  const int open = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm line = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &open, 0, &line);
  railpass::mpi::configure(line, "policy", "native");
  char to[2] = {}, from[2] = {};
  const auto exchange = [&] {
    railpass::mpi::neighbor_all_to_all(to, 1, MPI_CHAR, from, 1, MPI_CHAR, line);
  };
  begun_by = reinterpret_cast<neighbor_function>(dlsym(RTLD_NEXT, "PMPI_Neighbor_alltoall"));
  for (int i = 0; i < 1000; ++i) exchange();
  begun_by = nullptr;
  measure("the empty neighbor_all_to_all itself",
          [&] { PMPI_Neighbor_alltoall(to, 1, MPI_CHAR, from, 1, MPI_CHAR, line); });
  measure("its native version, settled", exchange);
  MPI_Comm_free(&line);
  MPI_Finalize();
}
