// SPDX-License-Identifier: BSL-1.0
// The header layers alone: no MPI, nothing linked.
#include <collectives/registry.hpp>
#include <cstdio>

int main() {
  const bool has = railpass::find_algorithm(railpass::collective::broadcast, "binomial") != nullptr;
  std::printf("binomial %s\n", has ? "found" : "missing");
  return has ? 0 : 1;
}
