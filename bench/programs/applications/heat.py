# SPDX-License-Identifier: BSL-1.0
"""The heat equation by finite elements with dolfinx and PETSc: heat.py GRID STEPS"""

import sys

import numpy as np
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from petsc4py import PETSc

GRID, STEPS = map(int, sys.argv[1:])
STEP = 0.01

domain = mesh.create_unit_square(MPI.COMM_WORLD, GRID, GRID)
space = fem.FunctionSpace(domain, ("Lagrange", 1))
before, u, v = fem.Function(space), ufl.TrialFunction(space), ufl.TestFunction(space)
before.interpolate(lambda x: np.exp(-20 * ((x[0] - 0.5) ** 2 + (x[1] - 0.5) ** 2)))
edge = mesh.locate_entities_boundary(domain, 1, lambda x: np.isclose(x[0], 0) | np.isclose(x[0], 1))
cold = fem.dirichletbc(PETSc.ScalarType(0), fem.locate_dofs_topological(space, 1, edge), space)
left = fem.form(u * v * ufl.dx + STEP * ufl.dot(ufl.grad(u), ufl.grad(v)) * ufl.dx)
right = fem.form(before * v * ufl.dx)
matrix = fem.petsc.assemble_matrix(left, bcs=[cold])
matrix.assemble()
vector = fem.petsc.create_vector(right)
solver = PETSc.KSP().create(domain.comm)
solver.setOperators(matrix)
solver.setType(PETSc.KSP.Type.CG)
solver.getPC().setType(PETSc.PC.Type.JACOBI)
solver.setTolerances(rtol=1e-8)
solver.setUp()

start = MPI.Wtime()
for _ in range(STEPS):
    with vector.localForm() as local:
        local.set(0)
    fem.petsc.assemble_vector(vector, right)
    fem.petsc.apply_lifting(vector, [left], [[cold]])
    vector.ghostUpdate(addv=PETSc.InsertMode.ADD, mode=PETSc.ScatterMode.REVERSE)
    fem.petsc.set_bc(vector, [cold])
    solver.solve(vector, before.vector)
    before.x.scatter_forward()
if domain.comm.rank == 0:
    print(f"time {MPI.Wtime() - start:.6f} s")
