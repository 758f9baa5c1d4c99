// SPDX-License-Identifier: BSL-1.0
#include "railpass/schedule/nodes.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <map>
#include <random>

using namespace railpass;

namespace {

// What is said of nodes, found out by counting.
node_facts count(const std::vector<std::int32_t>& node_of_rank) {
  std::map<std::int32_t, std::vector<std::int32_t>> nodes;
  for (std::size_t r = 0; r < node_of_rank.size(); ++r)
    nodes[node_of_rank[r]].push_back(std::int32_t(r));
  node_facts facts{.num_nodes = std::int32_t(nodes.size()),
                   .fewest_ranks = std::int32_t(node_of_rank.size()),
                   .most_ranks = 0};
  for (const auto& [number, ranks] : nodes) {
    facts.fewest_ranks = std::min(facts.fewest_ranks, std::int32_t(ranks.size()));
    facts.most_ranks = std::max(facts.most_ranks, std::int32_t(ranks.size()));
    if (ranks.back() - ranks.front() + 1 != std::int32_t(ranks.size())) facts.in_rank_order = false;
  }
  return facts;
}

bool same(const node_facts& a, const node_facts& b) {
  return a.num_nodes == b.num_nodes && a.fewest_ranks == b.fewest_ranks &&
         a.most_ranks == b.most_ranks && a.in_rank_order == b.in_rank_order;
}

}  // namespace

TEST_CASE("whatever the placement, nodes stand together, and the root is the first") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  for (int k = 0; k < 2000; ++k) {
    std::vector<std::int32_t> node_of_rank(1 + random() % 16);
    const std::uint32_t most = 1 + random() % 6;
    for (std::int32_t& node : node_of_rank) node = std::int32_t(7 * (random() % most));
    if (k % 2 == 0) std::sort(node_of_rank.begin(), node_of_rank.end(), std::greater<>{});
    node_order order(node_of_rank);
    CAPTURE(node_of_rank);
    REQUIRE(same(order.facts(), count(node_of_rank)));
    const auto p = std::int32_t(node_of_rank.size());
    for (int turn = 0; turn < 3; ++turn) {
      const auto root = std::int32_t(random() % std::uint32_t(p));
      order.begin_with(root);
      REQUIRE(order.physical()[0] == root);
      for (std::int32_t v = 0; v < p; ++v)
        REQUIRE(order.virtual_ranks()[std::size_t(order.physical()[std::size_t(v)])] == v);
      const auto begins = order.begins();
      REQUIRE(std::int32_t(begins.size()) == order.facts().num_nodes + 1);
      REQUIRE(begins.front() == 0);
      REQUIRE(begins.back() == p);
      const auto node_at = [&](std::int32_t v) {
        return node_of_rank[std::size_t(order.physical()[std::size_t(v)])];
      };
      for (std::size_t n = 0; n + 1 < begins.size(); ++n) {
        REQUIRE(begins[n] < begins[n + 1]);
        for (std::int32_t v = begins[n]; v < begins[n + 1]; ++v)
          REQUIRE(node_at(v) == node_at(begins[n]));
      }
    }
    order.begin_with(0);
    if (order.facts().in_rank_order)
      for (std::int32_t v = 0; v < p; ++v) REQUIRE(order.physical()[std::size_t(v)] == v);
  }
}

TEST_CASE("nodes in blocks are described without a list of them") {
  for (std::int32_t p = 1; p <= 20; ++p)
    for (std::int32_t each = 1; each <= 24; ++each) {
      CAPTURE(p, each);
      std::vector<std::int32_t> node_of_rank;
      for (std::int32_t r = 0; r < p; ++r) node_of_rank.push_back(r / each);
      CHECK(same(node_facts::blocks(p, each), count(node_of_rank)));
    }
}

TEST_CASE("the facts stay when the order is forgotten") {
  node_order order(std::vector<std::int32_t>{0, 1, 0, 2});
  order.forget_order();
  CHECK(same(order.facts(), {3, 1, 2, false}));
  CHECK(order.physical().empty());
  CHECK(order.begins().empty());
}
