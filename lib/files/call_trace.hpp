// SPDX-License-Identifier: BSL-1.0
//
// What RAILPASS_TRACE writes on one rank: a header, and a line for each call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::files {

inline constexpr std::string_view trace_header =
    "time_s,communicator,call,collective,bytes,arm,probability,timed,seconds";

struct traced_call {
  double started_s = 0;
  int communicator = 0, collective = 0, arm = 0;  ///< indices in call_trace's names
  std::int64_t bytes = 0;
  double probability = 0;  ///< of the arm among the calls of its plan
  bool timed = false;
  double seconds = 0;
};

struct call_trace {
  std::vector<std::string> names{};
  std::vector<traced_call> calls{};

  const std::string& name(int index) const { return names[std::size_t(index)]; }
};

call_trace parse_trace(std::string_view text, const std::string& name);
call_trace read_trace(const std::string& path);

}  // namespace railpass::internal::files
