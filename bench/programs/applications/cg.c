// SPDX-License-Identifier: BSL-1.0
// PETSc's conjugate gradients for Poisson's equation on a square grid: cg GRID ITERATIONS SOLVES
#include <petscksp.h>

#include <stdio.h>
#include <stdlib.h>

static Mat five_points(PetscInt n) {
  Mat a;
  PetscInt first, end;
  MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n, 5, NULL, 2, NULL, &a);
  MatGetOwnershipRange(a, &first, &end);
  for (PetscInt row = first; row < end; ++row) {
    const PetscInt x = row % n, y = row / n;
    MatSetValue(a, row, row, 4, INSERT_VALUES);
    if (x > 0) MatSetValue(a, row, row - 1, -1, INSERT_VALUES);
    if (x < n - 1) MatSetValue(a, row, row + 1, -1, INSERT_VALUES);
    if (y > 0) MatSetValue(a, row, row - n, -1, INSERT_VALUES);
    if (y < n - 1) MatSetValue(a, row, row + n, -1, INSERT_VALUES);
  }
  MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY);
  return a;
}

int main(int argc, char** argv) {
  PetscInitialize(&argc, &argv, NULL, NULL);
  const Mat a = five_points(atoi(argv[1]));
  Vec x, b;
  MatCreateVecs(a, &x, &b);
  VecSet(b, 1);
  KSP solver;
  PC preconditioner;
  KSPCreate(PETSC_COMM_WORLD, &solver);
  KSPSetOperators(solver, a, a);
  KSPSetType(solver, KSPCG);
  KSPGetPC(solver, &preconditioner);
  PCSetType(preconditioner, PCJACOBI);
  KSPSetTolerances(solver, 1e-50, 1e-50, PETSC_DEFAULT, atoi(argv[2]));
  KSPSetUp(solver);
  const double start = MPI_Wtime();
  for (int i = atoi(argv[3]); i > 0; --i) KSPSolve(solver, b, x);
  PetscPrintf(PETSC_COMM_WORLD, "time %.6f s\n", MPI_Wtime() - start);
  return PetscFinalize();
}
