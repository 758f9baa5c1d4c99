// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <stdexcept>
#include <string>

namespace railpass {

/// Everything railpass itself reports as wrong. The message names the file, field, setting or
/// argument and what was expected; it is one sentence that a user can act on.
/// Failed MPI calls are not errors of this kind: they keep their MPI error code.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace railpass
