// SPDX-License-Identifier: BSL-1.0
// Bine arms send fewer bytes out of groups of neighbours than their binomial counterparts: counted
// in the schedules, with random roots and random groups of consecutive ranks.
#include "collectives/verify.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <random>
#include <vector>

using namespace railpass;

namespace {

/// What an arm sends from group to group, in message lengths: the sum over the same roots and
/// groups for all arms.
double crossing(const arm& a, int p) {
  const message_size size{.units = p * 64, .unit_bytes = 1};
  struct message {
    int from, to;
    double length;
  };
  std::vector<message> messages;
  for (const schedule& s : build_all(a, p, true))
    for (const step& x : s.steps)
      for (int round = 0; x.kind == step_kind::send && round < x.rounds; ++round)
        messages.push_back(
            {s.rank, peer_of(x, round, p),
             double(round_extent(x.blocks, round, size).size()) / double(size.units)});
  std::mt19937 random(7);
  double total = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto root = int(random() % unsigned(p));
    std::vector<int> group(std::size_t(p), 0);
    for (unsigned borders = 1 + random() % 7; borders > 0; --borders) {
      const auto border = 1 + int(random() % unsigned(p - 1));
      for (int rank = border; rank < p; ++rank) ++group[std::size_t(rank)];
    }
    for (const message& m : messages)
      if (group[std::size_t((m.from + root) % p)] != group[std::size_t((m.to + root) % p)])
        total += m.length;
  }
  return total;
}

double ratio(collective op, const char* counterpart, int p) {
  return crossing(parse_arm(op, "bine"), p) / crossing(parse_arm(op, counterpart), p);
}

}  // namespace

TEST_CASE("bine trees send less out of groups of neighbours than binomial ones") {
  for (const collective op :
       {collective::broadcast, collective::reduce, collective::gather, collective::scatter})
    for (const int p : {12, 15, 16, 24, 32, 63, 64, 99, 100, 128, 192, 256, 384}) {
      CAPTURE(name_of(op), p);
      CHECK(ratio(op, "binomial", p) < ((p & (p - 1)) == 0 ? 0.86 : 0.96));
    }
}

TEST_CASE("bine butterflies send less out of groups of neighbours than hypercubes") {
  for (const int p : {16, 32, 64, 128, 256}) {
    CAPTURE(p);
    CHECK(ratio(collective::all_gather, "recursive_doubling", p) < 0.88);
    CHECK(ratio(collective::reduce_scatter_block, "recursive_halving", p) < 0.88);
    CHECK(ratio(collective::all_reduce, "recursive_halving", p) < 0.88);
  }
}
