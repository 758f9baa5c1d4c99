// SPDX-License-Identifier: BSL-1.0
#include "railpass/base/settings.hpp"

#include "support/catch.hpp"

#include <set>

using namespace railpass;

TEST_CASE("values of every kind are read from the environment") {
  const char* environment[] = {"PATH=/bin",
                               "RAILPASS_ENABLE=off",
                               "RAILPASS_SEED=3",
                               "RAILPASS_MIN_BYTES=64KiB",
                               "RAILPASS_HANG_REPORT=1.5",
                               "RAILPASS_POLICY=pass",
                               nullptr};
  const environment_settings read = read_environment(environment);
  CHECK(read.problems.empty());
  CHECK_FALSE(read.values.enable);
  CHECK(read.values.seed == 3);
  CHECK(read.values.min_bytes == 65536);
  CHECK(read.values.hang_report == 1.5);
  CHECK(read.values.policy == "pass");
  CHECK(read.from_environment.size() == 5);
}

TEST_CASE("nonsense is reported with the variable and what was expected, and leaves the default") {
  const char* environment[] = {"RAILPASS_ENABLE=maybe",
                               "RAILPASS_SEED=-1",
                               "RAILPASS_MIN_BYTES=1e99",
                               "RAILPASS_HANG_REPORT=nan",
                               "RAILPASS_CONTEXTS=9999999999999999999999",
                               "RAILPASS_ENABEL=1",
                               "RAILPASS_=x",
                               nullptr};
  const environment_settings read = read_environment(environment);
  REQUIRE(read.problems.size() == 7);
  CHECK(read.problems[0] == "RAILPASS_ENABLE='maybe': expected on or off");
  CHECK(read.problems[5].find("there is no setting 'enabel'") != std::string::npos);
  CHECK(read.problems[5].ends_with("; did you mean 'enable'?"));
  CHECK(read.values.enable);
  CHECK(read.values.seed == settings{}.seed);
}

TEST_CASE("every setting is described once, with a text, and its shown default is read back") {
  std::set<std::string_view> names;
  settings values;
  for (const setting_description& d : describe(settings{})) {
    CHECK(names.insert(d.name).second);
    CHECK_FALSE(d.text.empty());
    CHECK(d.value == d.standard);
    CHECK_NOTHROW(assign(values, d.name, d.standard, "test"));
  }
}
