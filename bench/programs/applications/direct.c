// SPDX-License-Identifier: BSL-1.0
// MUMPS factors Poisson's equation on a square grid and solves it: direct GRID FACTORIZATIONS SOLVES
#include <dmumps_c.h>
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { END = -2, START = -1, ANALYSE = 1, FACTOR = 2, SOLVE = 3, COMM_WORLD = -987654 };

static void do_job(DMUMPS_STRUC_C* m, int job) {
  m->job = job;
  dmumps_c(m);
  if (m->infog[0] < 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void add(DMUMPS_STRUC_C* m, int row, int column, double value) {
  m->irn[m->nnz] = row + 1;
  m->jcn[m->nnz] = column + 1;
  m->a[m->nnz++] = value;
}

// The lower half of a symmetric matrix.
static void set_problem(DMUMPS_STRUC_C* m, int n) {
  m->n = n * n;
  m->irn = malloc(3 * m->n * sizeof *m->irn);
  m->jcn = malloc(3 * m->n * sizeof *m->jcn);
  m->a = malloc(3 * m->n * sizeof *m->a);
  m->rhs = malloc(m->n * sizeof *m->rhs);
  for (int row = 0; row < m->n; ++row) {
    add(m, row, row, 4);
    if (row % n > 0) add(m, row, row - 1, -1);
    if (row >= n) add(m, row, row - n, -1);
    m->rhs[row] = 1;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  DMUMPS_STRUC_C m = {.par = 1, .sym = 1, .comm_fortran = COMM_WORLD};
  do_job(&m, START);
  for (int i = 0; i < 4; ++i) m.icntl[i] = i < 3 ? -1 : 0;  // prints nothing
  if (rank == 0) set_problem(&m, atoi(argv[1]));
  do_job(&m, ANALYSE);
  const int solves = atoi(argv[3]);
  const double start = MPI_Wtime();
  for (int i = atoi(argv[2]); i > 0; --i) {
    do_job(&m, FACTOR);
    for (int k = 0; k < solves; ++k) do_job(&m, SOLVE);
  }
  if (rank == 0) printf("time %.6f s\n", MPI_Wtime() - start);
  do_job(&m, END);
  return MPI_Finalize();
}
