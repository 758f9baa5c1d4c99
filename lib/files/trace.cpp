// SPDX-License-Identifier: BSL-1.0
#include "lib/files/call_trace.hpp"
#include "lib/files/files.hpp"
#include "lib/files/line_reader.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace railpass::internal::files {

call_trace parse_trace(std::string_view text, const std::string& name) {
  call_trace trace;
  std::unordered_map<std::string, int> indices;
  const auto index_of = [&](std::string_view word) {
    const auto [known, is_new] = indices.try_emplace(std::string(word), int(trace.names.size()));
    if (is_new) trace.names.emplace_back(word);
    return known->second;
  };
  line_reader lines(text, name);
  const auto fail = [&] {
    lines.fail("not a trace (expected a file that RAILPASS_TRACE wrote, with the columns " +
               std::string(trace_header) + ")");
  };
  if (!lines.next() || lines.line() != trace_header) fail();
  while (lines.next()) {
    // From behind, as the name of a communicator may have commas, too.
    std::array<std::string_view, 9> fields;
    std::string_view rest = lines.line();
    for (std::size_t i = fields.size() - 1; i >= 2; --i) {
      const std::size_t comma = rest.rfind(',');
      if (comma == std::string_view::npos) fail();
      fields[i] = rest.substr(comma + 1);
      rest = rest.substr(0, comma);
    }
    const std::size_t comma = rest.find(',');
    if (comma == std::string_view::npos) fail();
    fields[0] = rest.substr(0, comma);
    fields[1] = rest.substr(comma + 1);

    traced_call call{.started_s = lines.number(fields[0]),
                     .communicator = index_of(fields[1]),
                     .collective = index_of(fields[3]),
                     .arm = index_of(fields[5]),
                     .bytes = lines.bytes(fields[4]),
                     .probability = lines.number(fields[6]),
                     .timed = fields[7] == "1",
                     .seconds = lines.number(fields[8])};
    if (!call.timed && fields[7] != "0") lines.fail("expected 0 or 1 for timed");
    if (call.probability > 1) lines.fail("expected a probability of at most 1");
    trace.calls.push_back(call);
  }
  if (trace.calls.empty()) throw error(name + ": has no calls");
  return trace;
}

call_trace read_trace(const std::string& path) { return parse_trace(read_text(path), path); }

}  // namespace railpass::internal::files
