# RAILPASS_MPI_FAMILY: openmpi, mpich, intelmpi or mpi_abi, as lib/cli/launcher.hpp names them; other if
# it is none of these. What is built for one family can only run with it.
include(CheckCXXSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_CXX)
set(RAILPASS_MPI_FAMILY other)
foreach(pair OMPI_MAJOR_VERSION=openmpi I_MPI_VERSION=intelmpi MPICH_VERSION=mpich
    MPI_ABI_VERSION=mpi_abi)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 symbol)
  check_cxx_symbol_exists(${symbol} mpi.h RAILPASS_HAS_${symbol})
  if(RAILPASS_HAS_${symbol})
    list(GET pair 1 RAILPASS_MPI_FAMILY)
    break()
  endif()
endforeach()
unset(CMAKE_REQUIRED_LIBRARIES)
