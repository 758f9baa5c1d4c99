// SPDX-License-Identifier: BSL-1.0
// Closed forms against the simulator, as in algorithms_cost.cpp, of the collectives in which every
// rank has a block of the message.
#include "support/closed_forms.hpp"

using namespace railpass;

namespace {

std::vector<collective> collectives_of_blocks() {
  std::vector<collective> all;
  for (const collective op : all_collectives)
    if (traits_of(op).blocks && describe(op).lengths == block_lengths::equal) all.push_back(op);
  return all;
}

constexpr std::int64_t large = 1 << 17;

}  // namespace

TEST_CASE("closed forms of blocks are within 15 % of the simulator for most arms") {
  check_closed_forms(compare_closed_forms(collectives_of_blocks(), {64, 2048, large}), 0.5, 1.7,
                     0.15, 0.9);
}

TEST_CASE("closed forms of blocks on nodes with several ranks are within 50 % for most arms") {
  check_closed_forms(compare_closed_forms(collectives_of_blocks(), {64, 2048, large}, 4), 0.2, 4,
                     0.5, 0.9);
}
