// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>

namespace railpass {

/// Where times come from: seconds since some fixed moment, monotone. Injected, so that simulated
/// machines and tests bring their own.
using clock_function = double (*)();

inline double steady_clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace railpass
