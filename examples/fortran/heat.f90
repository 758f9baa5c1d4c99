! SPDX-License-Identifier: BSL-1.0
!
! Heat on a torus, in Fortran through ISO_C_BINDING: the exchange of the blocks' sides and the order of
! the loops are chosen while the program runs. The sum of the field stays what it was:
!   mpirun -n 4 heat_in_fortran
module railpass
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function railpass_set_create_f(name, comm, num_attributes, attributes, num_sizes, &
                                                  shape, num_features, features, set) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer, value :: comm
      integer(c_int), value :: num_attributes, num_sizes, num_features
      type(c_ptr), value :: attributes, shape, features
      type(c_ptr), intent(out) :: set
    end function
    integer(c_int) function railpass_set_add(set, version, values) bind(c)
      import
      type(c_ptr), value :: set, values
      character(kind=c_char), intent(in) :: version(*)
    end function
    integer(c_int) function railpass_set_begin(set, version) bind(c)
      import
      type(c_ptr), value :: set
      integer(c_int), intent(out) :: version
    end function
    integer(c_int) function railpass_set_end(set) bind(c)
      import
      type(c_ptr), value :: set
    end function
    integer(c_int) function railpass_set_free(set) bind(c)
      import
      type(c_ptr), intent(inout) :: set
    end function
    integer(c_int) function railpass_halo_create_f(comm, dimensions, grid, periodic, num_fields, fields, &
                                                   interior, width, type, corners, halo) bind(c)
      import
      integer, value :: comm, type
      integer(c_int), value :: dimensions, num_fields, corners
      integer(c_int), intent(in) :: grid(*), periodic(*)
      type(c_ptr), intent(in) :: fields(*)
      integer(c_int64_t), intent(in) :: interior(*), width(*)
      type(c_ptr), intent(out) :: halo
    end function
    integer(c_int) function railpass_halo_exchange(halo) bind(c)
      import
      type(c_ptr), value :: halo
    end function
    integer(c_int) function railpass_halo_free(halo) bind(c)
      import
      type(c_ptr), intent(inout) :: halo
    end function
  end interface
end module

program heat
  use iso_c_binding
  use mpi
  use railpass
  implicit none
  integer, parameter :: rows = 64, columns = 96, steps = 200
  double precision, target :: field(0:rows + 1, 0:columns + 1)
  double precision :: next(rows, columns), before, after
  type(c_ptr) :: step, halo
  integer :: rank, ranks, k, r, c, code
  integer(c_int) :: version

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call check(railpass_set_create_f('step' // c_null_char, MPI_COMM_WORLD, 0, c_null_ptr, 0, c_null_ptr, &
                                   0, c_null_ptr, step))
  call check(railpass_set_add(step, 'by_columns' // c_null_char, c_null_ptr))
  call check(railpass_set_add(step, 'by_rows' // c_null_char, c_null_ptr))
  ! C's last dimension is Fortran's first.
  call check(railpass_halo_create_f(MPI_COMM_WORLD, 2, [ranks, 1], [1, 1], 1, [c_loc(field)], &
                                    int([columns, rows], c_int64_t), [1_c_int64_t, 1_c_int64_t], &
                                    MPI_DOUBLE_PRECISION, 0, halo))
  field = 0
  do c = 1, columns
    do r = 1, rows
      field(r, c) = mod(7 * r + 3 * c + rank, 100)
    end do
  end do
  before = total()
  do k = 1, steps
    call check(railpass_halo_exchange(halo))
    call check(railpass_set_begin(step, version))
    if (version == 0) then
      do c = 1, columns
        do r = 1, rows
          next(r, c) = relaxed(r, c)
        end do
      end do
    else
      do r = 1, rows
        do c = 1, columns
          next(r, c) = relaxed(r, c)
        end do
      end do
    end if
    field(1:rows, 1:columns) = next
    call check(railpass_set_end(step))
  end do
  after = total()
  call check(railpass_halo_free(halo))
  call check(railpass_set_free(step))
  code = merge(0, 1, abs(after - before) < 1d-9 * before)
  if (rank == 0) print '(a, f0.3, a, f0.3, a)', 'heat ', before, ' before, ', after, &
    merge(' after: kept', ' after: LOST', code == 0)
  call MPI_Barrier(MPI_COMM_WORLD, k)
  call MPI_Finalize(k)
  if (code /= 0) stop 1

contains

  double precision function relaxed(r, c)
    integer, intent(in) :: r, c
    relaxed = 0.25d0 * (field(r - 1, c) + field(r + 1, c) + field(r, c - 1) + field(r, c + 1))
  end function

  double precision function total()
    double precision :: mine
    mine = sum(field(1:rows, 1:columns))
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
  end function

  subroutine check(code)
    integer(c_int), intent(in) :: code
    integer :: ignored
    if (code /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
  end subroutine
end program
