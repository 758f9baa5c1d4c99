// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/error.hpp"

#include <mpi.h>

#include <new>
#include <string>

namespace railpass::internal::halo {

/// A failed MPI call, on its way to the engine, which calls the user's error handler.
struct mpi_failure {
  const char* call;
  int code;
  std::string why{};  ///< empty: what MPI says of the code

  std::string text() const {
    if (!why.empty()) return std::string(call) + ": " + why;
    char said[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    PMPI_Error_string(code, said, &length);
    return std::string(call) + ": " + std::string(said, std::size_t(length));
  }
};
inline void check(const char* call, int code) {
  if (code != MPI_SUCCESS) throw mpi_failure{call, code};
}

/// Thrown on all ranks: the MPI library lacks something here.
struct unavailable {
  std::string why;
};

/// Runs what concerns this rank alone, before all ranks hear whether it could: what failed.
template <class F>
std::string problem_of(const F& what) {
  try {
    what();
  } catch (const error& e) {
    return e.what();
  } catch (const std::bad_alloc&) {
    return "there is not enough memory";
  } catch (const mpi_failure& e) {
    return e.text();
  }
  return {};
}

}  // namespace railpass::internal::halo
