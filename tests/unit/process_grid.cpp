// SPDX-License-Identifier: BSL-1.0
#include "railpass/base/process_grid.hpp"

#include "support/catch.hpp"

#include <random>
#include <set>

using namespace railpass;

TEST_CASE("ranks lie row by row, and coordinates beyond a periodic side are taken round") {
  const process_grid grid{.extents = {2, 3}, .periodic = {false, true}};
  CHECK(grid.coordinates(4) == std::vector<int>{1, 1});
  CHECK(grid.rank_at(std::vector<int>{1, 1}) == 4);
  CHECK(grid.rank_at(std::vector<int>{1, -1}) == 5);
  CHECK(grid.rank_at(std::vector<int>{0, 7}) == 1);
  CHECK(grid.rank_at(std::vector<int>{2, 0}) == process_grid::no_rank);
  CHECK(grid.rank_at(std::vector<int>{-1, 0}) == process_grid::no_rank);
}

TEST_CASE("every rank of a grid is where it says, and the neighbour of its neighbours") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    CAPTURE(trial);
    process_grid grid;
    int num_ranks = 1;
    for (int k = 0, d = 1 + trial % 4; k < d; ++k) {
      grid.extents.push_back(1 + int(random() % 4));
      grid.periodic.push_back(random() % 2 == 0);
      num_ranks *= grid.extents.back();
    }
    const std::vector<bool> all(grid.extents.size(), true);
    for (int rank = 0; rank < num_ranks; ++rank) {
      CHECK(grid.rank_at(grid.coordinates(rank)) == rank);
      for (const std::vector<int>& steps : steps_to_neighbours(all, true)) {
        std::vector<int> back = steps;
        for (int& s : back) s = -s;
        const int there = grid.neighbour(rank, steps);
        if (there != process_grid::no_rank) CHECK(grid.neighbour(there, back) == rank);
      }
    }
  }
}

TEST_CASE("steps go to each neighbour once: across faces first, then across edges and corners") {
  for (unsigned taken = 0; taken < 16; ++taken) {
    const std::vector<bool> dimensions{(taken & 1) != 0, (taken & 2) != 0, (taken & 4) != 0,
                                       (taken & 8) != 0};
    int count = 0, three = 1;
    for (const bool cut : dimensions) {
      count += cut;
      three *= cut ? 3 : 1;
    }
    const auto faces = steps_to_neighbours(dimensions, false);
    const auto all = steps_to_neighbours(dimensions, true);
    CHECK(int(faces.size()) == 2 * count);
    CHECK(int(all.size()) == three - 1);
    CHECK(std::set(all.begin(), all.end()).size() == all.size());
    CHECK(std::equal(faces.begin(), faces.end(), all.begin()));
    for (const auto& steps : all) {
      bool any = false;
      for (std::size_t k = 0; k < 4; ++k) {
        CHECK((steps[k] >= -1 && steps[k] <= 1 && (steps[k] == 0 || dimensions[k])));
        any = any || steps[k] != 0;
      }
      CHECK(any);
    }
  }
}
