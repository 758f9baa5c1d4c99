// SPDX-License-Identifier: BSL-1.0
//
// What is kept of the output of a command.
#include "lib/tune/command.hpp"

#include "railpass/base/hash.hpp"
#include "support/catch.hpp"

#include <string>

using namespace railpass;
using namespace railpass::internal;

TEST_CASE("a long output is cut in the middle, and its hash is of all bytes") {
  for (const std::string middle : {"x", "y"}) {
    const std::string all = std::string(600, 'a') + middle + std::string(600, 'b');
    const auto run = [&](std::size_t kept_bytes) {
      return tune::run_command(
          {.line = "printf " + all, .environment = {}, .kept_bytes = kept_bytes}, nullptr);
    };
    const tune::command_result whole = run(1202), cut = run(1000);
    CHECK(whole.failure.empty());
    CHECK(whole.output == all);
    CHECK_FALSE(whole.output_is_cut);
    CHECK(whole.output_hash == fnv1a(all));
    CHECK(cut.output == std::string(500, 'a') + std::string(500, 'b'));
    CHECK(cut.output_is_cut);
    CHECK(cut.output_hash == whole.output_hash);
  }
}
