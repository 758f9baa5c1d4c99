// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/hang_watch.hpp"

#include "support/catch.hpp"

#include <string>

using railpass::internal::report_of_wait;

namespace {

bool is_for_user(int rank, double waited_s) {
  const railpass::internal::wait_report report = report_of_wait("a rank waits", rank, waited_s, 10);
  CHECK(report.text.starts_with("a rank waits"));
  CHECK((report.text.size() > std::string("a rank waits").size()) == report.for_user);
  return report.for_user;
}

}  // namespace

// In one test case, as a process remembers its longest wait.
TEST_CASE("a user hears of the longest waits of few ranks") {
  CHECK(is_for_user(0, 10));
  CHECK_FALSE(is_for_user(0, 10));
  CHECK_FALSE(is_for_user(1, 10));
  CHECK(is_for_user(1, 20));
  CHECK_FALSE(is_for_user(7, 20));
  CHECK_FALSE(is_for_user(7, 30));
  CHECK(is_for_user(7, 40));
  CHECK_FALSE(is_for_user(100000, 80));
  CHECK_FALSE(is_for_user(0, 40));
  CHECK(is_for_user(0, 80));
}
