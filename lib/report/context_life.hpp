// SPDX-License-Identifier: BSL-1.0
//
// Draws the life of a context: the times of its calls, the arms tried, and the arm in use.
#pragma once

#include "lib/files/call_trace.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace railpass::internal::report {

/// Selects a context of a trace. Empty fields take the values of the context with the most calls.
struct context_choice {
  std::string collective{};             ///< as in the trace
  std::optional<std::int64_t> bytes{};  ///< any size of its class
};

/// SVG that stands alone. Throws error if the trace has no such context.
std::string draw_context_life(const files::call_trace& trace, const context_choice& which);

}  // namespace railpass::internal::report
