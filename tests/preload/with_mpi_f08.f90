! SPDX-License-Identifier: BSL-1.0
program with_mpi_f08
  use mpi_f08
  implicit none
  integer :: rank, num_ranks, code, i, total, wrong
  integer :: values(1000), sent(2), received(2), expected(2)
  type(MPI_Comm) :: line
  wrong = 0
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, num_ranks, code)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [num_ranks], [.false.], .false., line, code)
  do i = 1, 40
    values = -1
    if (rank == 0) values = i
    call MPI_Bcast(values, 1000, MPI_INTEGER, 0, MPI_COMM_WORLD, code)
    if (any(values /= i)) wrong = wrong + 1
    total = i
    call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    if (total /= i * num_ranks) wrong = wrong + 1
    sent = [100 * rank + i, -100 * rank - i]
    received = -1
    expected = -1
    if (rank > 0) expected(1) = -100 * (rank - 1) - i
    if (rank < num_ranks - 1) expected(2) = 100 * (rank + 1) + i
    call MPI_Neighbor_alltoall(sent, 1, MPI_INTEGER, received, 1, MPI_INTEGER, line, code)
    if (any(received /= expected)) wrong = wrong + 1
  end do
  if (rank == 0) print '(i0, a)', wrong, ' wrong'
  call MPI_Finalize(code)
end program
