/* SPDX-License-Identifier: BSL-1.0
 * Fits a linear model to data on all ranks; each step adds up the ranks' gradients of 64 KiB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { features = 8192, rows = 4 };

int main(int argc, char** argv) {
  static double data[rows * features], model[features], gradient[features], sum[features];
  int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 20000;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < rows * features; ++i) data[i] = (7 * i + 13 * rank) % 101 / 101.0;
  for (int step = 0; step < steps; ++step) {
    double *row = data + step % rows * features, error = -1; /* each row's answer is 1 */
    for (int i = 0; i < features; ++i) error += row[i] * model[i];
    for (int i = 0; i < features; ++i) gradient[i] = error * row[i] / (features * ranks);
    MPI_Allreduce(gradient, sum, features, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < features; ++i) model[i] -= sum[i];
  }
  if (rank == 0) printf("%d steps on %d ranks: model[1] = %.9f\n", steps, ranks, model[1]);
  return MPI_Finalize();
}
