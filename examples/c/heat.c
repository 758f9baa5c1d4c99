/* SPDX-License-Identifier: BSL-1.0
 *
 * Heat on a torus, in C: which exchange of the blocks' sides, and which of two loops is taken, is
 * found while the program runs. What comes out is compared with a program that knows nothing of
 * railpass, to the last bit:
 *   mpirun -n 4 heat
 */
#include "railpass/railpass.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  rows = 96,
  columns = 64,
  width = columns + 2,
  steps = 400
}; /* of a rank, without the sides */

static void check(int code) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "heat: %s\n", railpass_error_text());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double relaxed(const double* field, int at) {
  return 0.25 * ((field[at - 1] + field[at + 1]) + (field[at - width] + field[at + width]));
}

static void by_rows(double* field, double* next) {
  for (int r = 1; r <= rows; ++r)
    for (int c = 1; c <= columns; ++c) next[r * width + c] = relaxed(field, r * width + c);
  for (int r = 1; r <= rows; ++r)
    memcpy(field + r * width + 1, next + r * width + 1, columns * sizeof *field);
}

static void by_columns(double* field, double* next) {
  for (int c = 1; c <= columns; ++c)
    for (int r = 1; r <= rows; ++r) next[r * width + c] = relaxed(field, r * width + c);
  for (int r = 1; r <= rows; ++r)
    memcpy(field + r * width + 1, next + r * width + 1, columns * sizeof *field);
}

static void begin_field(double* field, int rank) {
  for (int r = 1; r <= rows; ++r)
    for (int c = 1; c <= columns; ++c) field[r * width + c] = (7 * r + 3 * c + rank) % 100;
}

static void exchange_by_hand(MPI_Comm grid, MPI_Datatype side, double* f) {
  int up, down, left, right;
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  MPI_Cart_shift(grid, 1, 1, &left, &right);
  MPI_Sendrecv(f + rows * width + 1, columns, MPI_DOUBLE, down, 0, f + 1, columns, MPI_DOUBLE, up,
               0, grid, MPI_STATUS_IGNORE);
  MPI_Sendrecv(f + width + 1, columns, MPI_DOUBLE, up, 1, f + (rows + 1) * width + 1, columns,
               MPI_DOUBLE, down, 1, grid, MPI_STATUS_IGNORE);
  MPI_Sendrecv(f + width + columns, 1, side, right, 2, f + width, 1, side, left, 2, grid,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(f + width + 1, 1, side, left, 3, f + width + columns + 1, 1, side, right, 3, grid,
               MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  static double field[(rows + 2) * width], next[(rows + 2) * width], expected[(rows + 2) * width];
  const int64_t global[] = {2 * rows, 2 * columns}, interior[] = {rows, columns}, sides[] = {1, 1};
  const int periodic[] = {1, 1};
  const char* const attributes[] = {"order"};
  const char* const values[][1] = {{"rows"}, {"columns"}};
  void* const fields[] = {field};
  int shape[2] = {2, 2}, suggested[2], rank, size, version, winner, same = 1;
  char exchange[100];
  railpass_set step;
  railpass_region solve;
  railpass_halo halo;
  MPI_Comm grid;
  MPI_Datatype side;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 4) {
    if (rank == 0) fprintf(stderr, "usage: mpirun -n 4 heat\n");
    MPI_Finalize();
    return 2;
  }
  check(
      railpass_suggest_grid(MPI_COMM_WORLD, 2, global, periodic, 1, sizeof(double), 0, suggested));
  check(railpass_set_create("step", MPI_COMM_WORLD, 1, attributes, 0, NULL, 0, NULL, &step));
  check(railpass_set_add(step, "by_rows", values[0]));
  check(railpass_set_add(step, "by_columns", values[1]));
  check(railpass_halo_create(MPI_COMM_WORLD, 2, shape, periodic, 1, fields, interior, sides,
                             MPI_DOUBLE, 0, &halo));
  check(railpass_region_create("solve", MPI_COMM_WORLD, &solve));
  begin_field(field, rank);
  for (int k = 0; k < steps; ++k) {
    check(railpass_region_begin(solve));
    check(railpass_halo_exchange(halo));
    check(railpass_set_begin(step, &version));
    (version == 0 ? by_rows : by_columns)(field, next);
    check(railpass_set_end(step));
    check(railpass_region_end(solve));
  }
  check(railpass_set_winner(step, &winner));
  check(railpass_halo_winner(halo, exchange, sizeof exchange));
  check(railpass_halo_free(&halo));
  check(railpass_region_free(&solve));
  check(railpass_set_free(&step));

  MPI_Cart_create(MPI_COMM_WORLD, 2, shape, periodic, 0, &grid);
  MPI_Type_vector(rows, 1, width, MPI_DOUBLE, &side);
  MPI_Type_commit(&side);
  begin_field(expected, rank);
  for (int k = 0; k < steps; ++k) {
    exchange_by_hand(grid, side, expected);
    by_rows(expected, next);
  }
  for (int r = 1; r <= rows; ++r)
    for (int c = 1; c <= columns; ++c)
      if (field[r * width + c] != expected[r * width + c]) same = 0;
  check(railpass_all_reduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
  if (rank == 0)
    printf("step %s, exchange %s, suggested grid %d x %d: %s\n",
           winner < 0    ? "not chosen yet"
           : winner == 0 ? "by_rows"
                         : "by_columns",
           exchange[0] ? exchange : "not chosen yet", suggested[0], suggested[1],
           same ? "as by hand" : "WRONG");
  MPI_Type_free(&side);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  return same ? 0 : 1;
}
