! SPDX-License-Identifier: BSL-1.0
      program with_mpif_h
      implicit none
      include 'mpif.h'
      integer rank, num_ranks, code, i, total, wrong
      integer values(1000), sent(2), received(2), expected(2), line
      integer extents(1)
      logical periods(1)
      wrong = 0
      call MPI_INIT(code)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, code)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, num_ranks, code)
      extents(1) = num_ranks
      periods(1) = .false.
      call MPI_CART_CREATE(MPI_COMM_WORLD, 1, extents, periods,
     &                     .false., line, code)
      do i = 1, 40
        values = -1
        if (rank .eq. 0) values = i
        call MPI_BCAST(values, 1000, MPI_INTEGER, 0, MPI_COMM_WORLD,
     &                 code)
        if (any(values .ne. i)) wrong = wrong + 1
        total = i
        call MPI_ALLREDUCE(MPI_IN_PLACE, total, 1, MPI_INTEGER,
     &                     MPI_SUM, MPI_COMM_WORLD, code)
        if (total .ne. i * num_ranks) wrong = wrong + 1
        sent(1) = 100 * rank + i
        sent(2) = -100 * rank - i
        received = -1
        expected = -1
        if (rank .gt. 0) expected(1) = -100 * (rank - 1) - i
        if (rank .lt. num_ranks - 1) expected(2) = 100 * (rank + 1) + i
        call MPI_NEIGHBOR_ALLTOALL(sent, 1, MPI_INTEGER, received, 1,
     &                             MPI_INTEGER, line, code)
        if (any(received .ne. expected)) wrong = wrong + 1
      end do
      if (rank .eq. 0) print '(i0, a)', wrong, ' wrong'
      call MPI_FINALIZE(code)
      end program
