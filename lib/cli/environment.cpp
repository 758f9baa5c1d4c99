// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/environment.hpp"

#include "lib/cli/arguments.hpp"
#include "lib/files/files.hpp"
#include "railpass/select/policies.hpp"

#include <algorithm>
#include <unistd.h>

namespace railpass::cli {
namespace {

void check_policy(const std::string& name) {
  try {
    select::require_policy(name);
  } catch (const error& problem) {
    throw error(std::string("RAILPASS_POLICY: ") + problem.what());
  }
}

void check_collectives(const std::string& list) {
  if (list == "all") return;
  for (const std::string& name : split_list("RAILPASS_COLLECTIVES", list))
    parse_collective("RAILPASS_COLLECTIVES", name);
}

void check_pins(const std::string& list) {
  if (list.empty()) return;
  for (const std::string& pin : split_list("RAILPASS_USE", list)) {
    const std::size_t colon = pin.find(':');
    if (colon == std::string::npos)
      throw error("RAILPASS_USE '" + pin + "': expected collective:arm");
    const collective op = parse_collective("RAILPASS_USE", pin.substr(0, colon));
    arm_of_option("RAILPASS_USE", op, pin.substr(colon + 1));
  }
}

void check_profile(const std::string& path) {
  if (!path.empty()) files::read_profile(path);
}

}  // namespace

environment_settings read_settings() {
  environment_settings result = read_environment(environ);
  const auto check = [&](void (*what)(const std::string&), const std::string& value) {
    try {
      what(value);
    } catch (const error& problem) {
      result.problems.emplace_back(problem.what());
    }
  };
  check(check_policy, result.values.policy);
  check(check_collectives, result.values.collectives);
  check(check_pins, result.values.use);
  check(check_profile, result.values.profile);
  return result;
}

}  // namespace railpass::cli
