! SPDX-License-Identifier: BSL-1.0
      program with_mpif_h
      implicit none
      include 'mpif.h'
      integer rank, num_ranks, code, i, total, wrong
      integer values(1000)
      wrong = 0
      call MPI_INIT(code)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, code)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, num_ranks, code)
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
      end do
      if (rank .eq. 0) print '(i0, a)', wrong, ' wrong'
      call MPI_FINALIZE(code)
      end program
