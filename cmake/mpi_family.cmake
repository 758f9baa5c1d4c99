# RAILPASS_MPI_FAMILY: openmpi, mpich, intelmpi or mpi_abi, as lib/launch/launcher.hpp names them; other if
# it is none of these. What is built for one family can only run with it, so that installed packages ask
# here, too.
include(CheckCXXSymbolExists)
include(CMakePushCheckState)
cmake_push_check_state()
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_CXX)
set(CMAKE_REQUIRED_QUIET ON)
set(RAILPASS_MPI_FAMILY other)
foreach(pair OMPI_MAJOR_VERSION=openmpi I_MPI_VERSION=intelmpi MPICH_VERSION=mpich
    MPI_ABI_VERSION=mpi_abi)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 symbol)
  unset(RAILPASS_HAS_${symbol} CACHE)  # of the MPI of an earlier configuration
  check_cxx_symbol_exists(${symbol} mpi.h RAILPASS_HAS_${symbol})
  if(RAILPASS_HAS_${symbol})
    list(GET pair 1 RAILPASS_MPI_FAMILY)
    break()
  endif()
endforeach()
cmake_pop_check_state()
