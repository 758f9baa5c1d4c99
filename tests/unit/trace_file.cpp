// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/trace_file.hpp"

#include "support/catch.hpp"
#include "support/scratch_directory.hpp"

#include <fstream>
#include <thread>
#include <vector>

using railpass::internal::trace_file, railpass::internal::trace_line;

TEST_CASE("a line has the columns of the header, whatever its names") {
  CHECK(trace_line{.started_s = 1.5,
                   .communicator = "world",
                   .call = 7,
                   .operation = "broadcast",
                   .bytes = 1024,
                   .arm = "binomial",
                   .probability = 0.25,
                   .timed = true,
                   .seconds = 2e-6}
            .text() == "1.500000000,world,7,broadcast,1024,binomial,0.250000,1,0.000002000");
}

TEST_CASE("a communicator's name breaks no line, and its length hides no column") {
  const std::string text =
      trace_line{.communicator = "a\nb" + std::string(124, '\x1b'), .operation = "gather"}.text();
  CHECK(text.find('\n') == text.npos);
  CHECK_THAT(text, ContainsSubstring(",a\\nb\\x1b"));
  CHECK_THAT(text, ContainsSubstring("\\x1b,0,gather,0,,1.000000,0,0.000000000"));
}

TEST_CASE("all lines of all threads are in the file, whole") {
  const scratch_directory folder;
  const std::string path = folder.file("trace");
  constexpr int threads = 4, lines = 3000;
  trace_file trace;
  CHECK(trace.add("before it is open", 0).empty());
  REQUIRE(trace.open(path).empty());
  CHECK(trace.is_open());
  const std::string line(100, 'x');
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < lines; ++i)
        if (!trace.add(line, 1e-3 * i).empty()) std::abort();
    });
  for (std::thread& t : all) t.join();
  CHECK(trace.close().empty());
  CHECK_FALSE(trace.is_open());
  int found = 0;
  std::ifstream file(path);
  for (std::string read; std::getline(file, read); ++found) REQUIRE(read == line);
  CHECK(found == threads * lines);
}

TEST_CASE("the first line is in the file at once, and others after a second") {
  const scratch_directory folder;
  const std::string path = folder.file("trace");
  const auto content = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  trace_file trace;
  REQUIRE(trace.open(path).empty());
  CHECK(trace.add("header", 100).empty());
  CHECK(content() == "header\n");
  CHECK(trace.add("a", 100.5).empty());
  CHECK(content() == "header\n");
  CHECK(trace.add("b", 101).empty());
  CHECK(content() == "header\na\nb\n");
  CHECK(trace.add("c", 101.5).empty());
  CHECK(content() == "header\na\nb\n");
  CHECK(trace.close().empty());
  CHECK(content() == "header\na\nb\nc\n");
}

TEST_CASE("a full disk is said once, and nothing more is traced") {
  const std::string line(1000, 'x');
  for (const int lines : {1, 1000}) {
    CAPTURE(lines);
    trace_file trace;
    REQUIRE(trace.open("/dev/full").empty());
    std::vector<std::string> said;
    for (int i = 0; i < lines; ++i) said.push_back(trace.add(line, 0));
    CHECK_FALSE(trace.is_open());
    said.push_back(trace.close());
    CHECK_FALSE(trace.is_open());
    std::erase(said, "");
    REQUIRE(said.size() == 1);
    CHECK_THAT(said[0], ContainsSubstring("RAILPASS_TRACE: '/dev/full' cannot be written"));
    CHECK_THAT(said[0], ContainsSubstring("No space left"));
  }
}

TEST_CASE("a trace that cannot be made is said") {
  trace_file trace;
  CHECK_THAT(trace.open("/nonexistent/trace"), ContainsSubstring("No such file"));
  CHECK_FALSE(trace.is_open());
  CHECK(trace.add("line", 0).empty());
  CHECK(trace.close().empty());
}
