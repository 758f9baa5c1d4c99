// SPDX-License-Identifier: BSL-1.0
//
// A program that gives up privileges half way: its processes may then not copy from or to each
// other's memory. privileges CALLS
#define _GNU_SOURCE
#include <mpi.h>

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most = 20000, most_ranks = 8 };

// The last rank is no longer dumpable, and none has what root has to look at it all the same.
static void give_up(int is_last) {
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct caps[2];
  if (syscall(SYS_capget, &head, caps) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  const unsigned kept = ~(1u << CAP_SYS_PTRACE);
  caps[0].effective &= kept;
  caps[0].permitted &= kept;
  if (syscall(SYS_capset, &head, caps) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
  if (is_last) prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = argc > 1 ? atoi(argv[1]) : 0;
  int rank = 0, ranks = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  static int in[most], out[most_ranks * most], sum[most];
  for (int i = 0; i < calls; ++i) {
    if (i == calls / 2) give_up(rank == ranks - 1);
    for (int k = 0; k < most; ++k) in[k] = rank + k + i;
    MPI_Allgather(in, most, MPI_INT, out, most, MPI_INT, MPI_COMM_WORLD);
    for (int q = 0; q < ranks; ++q)
      for (int k = 0; k < most; k += 9) wrong += out[q * most + k] != q + k + i;
    MPI_Allreduce(in, sum, most, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int k = 0; k < most; k += 9)
      wrong += sum[k] != ranks * (k + i) + ranks * (ranks - 1) / 2;
    MPI_Gather(in, most, MPI_INT, out, most, MPI_INT, i % ranks, MPI_COMM_WORLD);
    if (rank == i % ranks)
      for (int q = 0; q < ranks; ++q) wrong += out[q * most + most - 1] != q + most - 1 + i;
  }
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong\n", all);
  MPI_Finalize();
  return 0;
}
