// SPDX-License-Identifier: BSL-1.0
//
// How C++ becomes C: exceptions become error codes and a text.
#pragma once

#include "railpass/base/error.hpp"

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

}  // namespace railpass::internal::c
