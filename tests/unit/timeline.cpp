// SPDX-License-Identifier: BSL-1.0
#include "lib/files/call_trace.hpp"
#include "lib/report/context_life.hpp"
#include "railpass/base/error.hpp"
#include "support/catch.hpp"

using namespace railpass;
using namespace railpass::internal;

namespace {

const std::string header = std::string(files::trace_header) + '\n';

std::string line(std::string_view communicator, std::string_view collective, std::int64_t bytes,
                 std::string_view arm, double probability) {
  return "1.5," + std::string(communicator) + ",7," + std::string(collective) + ',' +
         std::to_string(bytes) + ',' + std::string(arm) + ',' + std::to_string(probability) +
         ",1,0.000010\n";
}

std::string message_of(std::string_view text) {
  try {
    files::parse_trace(text, "trace.0");
  } catch (const error& problem) {
    return problem.what();
  }
  return "";
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST_CASE("a trace is read as it was written, also with commas in names") {
  const files::call_trace trace =
      files::parse_trace(header + line("grid, rows", "broadcast", 1024, "chain", 0.25), "trace.0");
  REQUIRE(trace.calls.size() == 1);
  const files::traced_call& c = trace.calls[0];
  CHECK(trace.name(c.communicator) == "grid, rows");
  CHECK(trace.name(c.collective) == "broadcast");
  CHECK(trace.name(c.arm) == "chain");
  CHECK(c.started_s == 1.5);
  CHECK(c.bytes == 1024);
  CHECK(c.probability == 0.25);
  CHECK(c.timed);
  CHECK(c.seconds == 1e-5);
}

TEST_CASE("what is no trace is refused with its line") {
  CHECK_THAT(message_of(""), ContainsSubstring("trace.0: line 0: not a trace"));
  CHECK_THAT(message_of("{}\n"), ContainsSubstring("line 1: not a trace"));
  CHECK_THAT(message_of(header), ContainsSubstring("has no calls"));
  const std::string good = line("world", "barrier", 0, "native", 1);
  CHECK(message_of(header + good).empty());
  CHECK_THAT(message_of(header + good + "1,2,3\n"), ContainsSubstring("line 3: not a trace"));
  CHECK_THAT(message_of(header + good.substr(0, good.size() - 1)), ContainsSubstring("cut short"));
  CHECK_THAT(message_of(header + line("world", "barrier", 0, "native", 1.5)),
             ContainsSubstring("line 2: expected a probability"));
  CHECK_THAT(message_of(header + "1,w,1,barrier,0,native,1,maybe,1\n"),
             ContainsSubstring("line 2: expected 0 or 1"));
  CHECK_THAT(message_of(header + "1,w,1,barrier,-4,native,1,1,1\n"),
             ContainsSubstring("line 2: expected a size"));
}

TEST_CASE("the picture is of the context with the most calls, or of the one that was asked for") {
  std::string text = header;
  for (int i = 0; i < 30; ++i) text += line("world", "all_reduce", 8, "native", 0.9);
  for (int i = 0; i < 10; ++i) text += line("world", "broadcast", 1500, "native", 0.9);
  text += line("world", "broadcast", 1030, "<chain>", 0.1);
  for (int i = 0; i < 10; ++i) text += line("world", "broadcast", 1024, "binomial", 0.9);
  const files::call_trace trace = files::parse_trace(text, "trace.0");
  CHECK_THAT(report::draw_context_life(trace, {}),
             ContainsSubstring("all_reduce of 8 to below 16, communicator"));

  const std::string svg = report::draw_context_life(trace, {.collective = "broadcast"});
  CHECK_THAT(svg, ContainsSubstring("broadcast of 1KiB to below 2KiB, communicator world"));
  CHECK_THAT(svg, ContainsSubstring("native in use from call 0<"));
  CHECK_THAT(svg, ContainsSubstring("binomial in use from call 11<"));
  CHECK(count(svg, "in use from call") == 2);
  CHECK_THAT(svg, ContainsSubstring("call 10: &lt;chain&gt;"));  // a try
  CHECK_THAT(report::draw_context_life(trace, {.bytes = 2000}), ContainsSubstring("broadcast"));
  CHECK_THROWS_AS(report::draw_context_life(trace, {.collective = "scan"}), error);
  CHECK_THROWS_AS(report::draw_context_life(trace, {.bytes = 4096}), error);
}

TEST_CASE("a context of one call has a picture") {
  const files::call_trace trace =
      files::parse_trace(header + line("world", "barrier", 0, "native", 1), "trace.0");
  CHECK_THAT(report::draw_context_life(trace, {}), ContainsSubstring("</svg>"));
}
