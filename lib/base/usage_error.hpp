// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/error.hpp"

namespace railpass::internal {

/// The command line or the environment asks for something that cannot be. The program railpass ends
/// with another exit status than for other errors.
class usage_error : public error {
 public:
  using error::error;
};

}  // namespace railpass::internal
