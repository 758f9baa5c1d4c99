// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/mpi/rank_map.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <numeric>
#include <random>

using namespace railpass;
using namespace railpass::internal;

TEST_CASE("a map says what its table says, evenly spaced or not") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    CAPTURE(trial);
    std::vector<int> others(std::size_t(1 + trial % 20));
    if (trial % 3 == 0) {  // a row, a column, or one backwards
      const int first = int(random() % 100), stride = int(random() % 9) - 4;
      for (std::size_t r = 0; r < others.size(); ++r) others[r] = first + int(r) * stride;
    } else {
      std::iota(others.begin(), others.end(), 0);
      std::shuffle(others.begin(), others.end(), random);
    }
    const rank_map map(others);
    for (std::size_t r = 0; r < others.size(); ++r) CHECK(map[int(r)] == others[r]);
  }
  const rank_map same;
  for (int r = 0; r < 100; ++r) CHECK(same[r] == r);
}
