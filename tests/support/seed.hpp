// SPDX-License-Identifier: BSL-1.0
//
// The seed of tests that draw a new one each run. Such a test puts `TEST_SEED=<seed>` into the
// message of its failures; with that in the environment it draws the same numbers again.
#pragma once

#include <cstdlib>
#include <random>
#include <string>

namespace railpass::test {

inline unsigned new_seed() {
  const char* given = std::getenv("TEST_SEED");
  return given ? unsigned(std::stoul(given)) : std::random_device{}();
}

}  // namespace railpass::test
