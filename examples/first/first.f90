! SPDX-License-Identifier: BSL-1.0
! The program of first.c in Fortran, which knows nothing of railpass.
program first
  use mpi
  implicit none
  integer, parameter :: features = 8192, rows = 4
  double precision :: table(features, rows), model(features) = 0, gradient(features), total(features)
  integer :: rank, ranks, code, i, step, steps = 20000
  character(len=10) :: argument = ''
  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) steps
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  table = reshape([(mod(7 * i + 13 * rank, 101) / 101.0d0, i = 0, rows * features - 1)], [features, rows])
  do step = 0, steps - 1
    associate (row => table(:, mod(step, rows) + 1))
      gradient = (dot_product(row, model) - 1) * row / (features * ranks)
    end associate
    call MPI_Allreduce(gradient, total, features, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
    model = model - total
  end do
  if (rank == 0) print '(i0, a, i0, a, f11.9)', steps, ' steps on ', ranks, ' ranks: model[1] = ', model(2)
  call MPI_Finalize(code)
end program
