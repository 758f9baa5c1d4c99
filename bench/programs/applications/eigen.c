// SPDX-License-Identifier: BSL-1.0
// ScaLAPACK's eigenvalues and eigenvectors of a symmetric matrix: eigen ORDER REPETITIONS
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
int numroc_(const int* n, const int* block, const int* coordinate, const int* source, const int* size);
void descinit_(int* descriptor, const int* rows, const int* columns, const int* row_block, const int* column_block,
               const int* row_source, const int* column_source, const int* context, const int* leading, int* info);
void pdsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* ia, const int* ja,
              const int* desc_a, double* w, double* z, const int* iz, const int* jz, const int* desc_z, double* work,
              const int* lwork, int* iwork, const int* liwork, int* info);

static const int zero = 0, one = 1, block = 32;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = atoi(argv[1]);
  int rank, size, grid[2] = {0, 0}, here[2], context, descriptor[9], info;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, grid);
  Cblacs_get(0, 0, &context);
  Cblacs_gridinit(&context, "Row", grid[0], grid[1]);
  Cblacs_gridinfo(context, &grid[0], &grid[1], &here[0], &here[1]);
  const int rows = numroc_(&n, &block, &here[0], &zero, &grid[0]), columns = numroc_(&n, &block, &here[1], &zero, &grid[1]);
  descinit_(descriptor, &n, &n, &block, &block, &zero, &zero, &context, &rows, &info);
  double *a = malloc(sizeof(double) * rows * columns), *z = malloc(sizeof(double) * rows * columns), words,
         *values = malloc(sizeof(double) * n);
  int query = -1, integers = 7 * n + 8 * grid[1] + 2, *indices = malloc(sizeof(int) * integers);
  pdsyevd_("V", "L", &n, a, &one, &one, descriptor, values, z, &one, &one, descriptor, &words, &query, indices, &integers,
           &info);
  const int length = 2 * (int)words + 4 * n;
  double* work = malloc(sizeof(double) * length);
  const double start = MPI_Wtime();
  for (int k = atoi(argv[2]); k > 0; --k) {
    for (int j = 0; j < columns; ++j)
      for (int i = 0; i < rows; ++i) {
        const int row = (i / block * grid[0] + here[0]) * block + i % block;
        const int column = (j / block * grid[1] + here[1]) * block + j % block;
        a[i + (size_t)j * rows] = 1.0 / (1 + abs(row - column));
      }
    pdsyevd_("V", "L", &n, a, &one, &one, descriptor, values, z, &one, &one, descriptor, work, &length, indices,
             &integers, &info);
    if (info != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) printf("time %.6f s, largest %.12g\n", MPI_Wtime() - start, values[n - 1]);
  return MPI_Finalize();
}
