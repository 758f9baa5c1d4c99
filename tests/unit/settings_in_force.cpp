// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/settings_in_force.hpp"

#include "support/catch.hpp"

#include <cstdio>
#include <fstream>

using namespace railpass;
using namespace railpass::internal;

namespace {

// The file that this test's build takes for the site's.
const std::string site_file = RAILPASS_SITE_FILE;

settings_in_force read(const std::string& text, std::vector<const char*> environment = {}) {
  std::ofstream(site_file) << text;
  environment.push_back(nullptr);
  settings_in_force result = read_settings(environment.data());
  std::remove(site_file.c_str());
  return result;
}

}  // namespace

TEST_CASE("the site's file sets what the environment does not") {
  const settings_in_force found =
      read("# for all\r\n\n  policy=pass\nseed =  5 \t\r\nmin_bytes = 64KiB\nuse = a:b,c:d=e",
           {"RAILPASS_SEED=3", "HOME=/"});
  CHECK(found.problems.empty());
  CHECK(found.values.policy == "pass");
  CHECK(found.values.seed == 3);
  CHECK(found.values.min_bytes == 65536);
  CHECK(found.values.use == "a:b,c:d=e");
  CHECK(found.origins.at("policy") == site_file + ": line 3");
  CHECK(found.origins.at("seed") == "RAILPASS_SEED");
  CHECK(found.origins.size() == 4);
  CHECK(found.site_file == site_file);
}

TEST_CASE("wrong lines are named, set nothing, and the others count") {
  const settings_in_force found = read(
      "polcy = pass\nseed\nseed = -1\n= 3\nseed = 4\nseed = 5\nenable = maybe\nRAILPASS_USE = x\n",
      {"RAILPASS_ENABLE=off"});
  REQUIRE(found.problems.size() == 7);
  CHECK(found.problems[0].starts_with(site_file + ": line 1: polcy: there is no setting 'polcy'"));
  CHECK(found.problems[0].ends_with("; did you mean 'policy'?"));
  CHECK(found.problems[1] == site_file + ": line 2: expected name = value, found 'seed'");
  CHECK(found.problems[2] ==
        site_file + ": line 3: seed='-1': expected a whole number, not negative");
  CHECK(found.problems[4] == site_file + ": line 6: seed is set before, " + site_file + ": line 5");
  CHECK(found.problems[5].starts_with(site_file + ": line 7: enable='maybe'"));
  CHECK(found.values.seed == 4);
  CHECK_FALSE(found.values.enable);
}

TEST_CASE("a value that the environment has wrong is the site's") {
  const settings_in_force found = read("seed = 5\n", {"RAILPASS_SEED=x"});
  CHECK(found.problems.size() == 1);
  CHECK(found.values.seed == 5);
}

TEST_CASE("RAILPASS_CONF names another file, which must be there, or none") {
  CHECK(read("seed = 5\n", {"RAILPASS_CONF="}).values.seed == settings{}.seed);
  CHECK(read("", {"RAILPASS_SITE=/store"}).problems.empty());
  const std::string other = site_file + ".other", names_other = "RAILPASS_CONF=" + other;
  const settings_in_force missing = read("seed = 5\n", {names_other.c_str()});
  REQUIRE(missing.problems.size() == 1);
  CHECK(missing.problems[0].starts_with(other + ": "));
  CHECK(missing.values.seed == settings{}.seed);
  std::ofstream(other) << "seed = 6\n";
  CHECK(read("seed = 5\n", {names_other.c_str()}).values.seed == 6);
  std::remove(other.c_str());
}

TEST_CASE("an installation without a file has the defaults") {
  std::remove(site_file.c_str());
  const settings_in_force found = read_settings(nullptr);
  CHECK(found.problems.empty());
  CHECK(found.origins.empty());
  CHECK(found.values.seed == settings{}.seed);
}
