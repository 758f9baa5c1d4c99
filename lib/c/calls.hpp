// SPDX-License-Identifier: BSL-1.0
//
// How C++ becomes C: exceptions become error codes and a text; Fortran's handles become C's.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/railpass.h"

#include <mpi.h>

#include <exception>
#include <new>
#include <string>

namespace railpass::internal::c {

/// Per calling thread. Does not throw.
void remember_error(const char* text) noexcept;

/// Runs `work`, which returns nothing. Returns an MPI error code.
template <class Work>
int code_of(const Work& work) noexcept {
  try {
    work();
    return MPI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (const std::exception& problem) {
    remember_error(problem.what());
  } catch (...) {
    remember_error("an unknown exception");
  }
  return MPI_ERR_OTHER;
}

/// Throws error if an argument is missing: `what` names it.
inline void require(bool holds, const char* what) {
  if (!holds) throw error(what);
}

#ifdef RAILPASS_HAS_FROMINT
inline MPI_Comm comm_of(railpass_fint handle) { return MPI_Comm_fromint(handle); }
inline MPI_Datatype type_of(railpass_fint handle) { return MPI_Type_fromint(handle); }
#else
inline MPI_Comm comm_of(railpass_fint handle) { return MPI_Comm_f2c(handle); }
inline MPI_Datatype type_of(railpass_fint handle) { return MPI_Type_f2c(handle); }
#endif

}  // namespace railpass::internal::c
