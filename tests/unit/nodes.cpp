// SPDX-License-Identifier: BSL-1.0
#include "railpass/schedule/nodes.hpp"

#include "lib/group/known_placements.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <map>
#include <random>

using namespace railpass;
using namespace railpass::internal;

namespace {

// Facts about nodes, by counting.
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

// An order of nodes as tables: the physical rank of each virtual rank, and the first virtual rank
// of each node.
struct order_in_tables {
  std::vector<std::int32_t> physical, begins{0};
  order_in_tables(const std::vector<std::int32_t>& node_of_rank, std::int32_t root) {
    std::vector<std::int32_t> seen;  // nodes by their first ranks
    for (const std::int32_t node : node_of_rank)
      if (std::find(seen.begin(), seen.end(), node) == seen.end()) seen.push_back(node);
    const auto at = std::find(seen.begin(), seen.end(), node_of_rank[std::size_t(root)]);
    std::rotate(seen.begin(), at, seen.end());
    for (const std::int32_t node : seen) {
      std::vector<std::int32_t> ranks;
      for (std::size_t r = 0; r < node_of_rank.size(); ++r)
        if (node_of_rank[r] == node) ranks.push_back(std::int32_t(r));
      const auto first = std::find(ranks.begin(), ranks.end(), root);
      if (first != ranks.end()) std::rotate(ranks.begin(), first, ranks.end());
      physical.insert(physical.end(), ranks.begin(), ranks.end());
      begins.push_back(std::int32_t(physical.size()));
    }
  }
};

enum class layout { blocks, backwards, turns, uneven, random };
constexpr layout layouts[] = {layout::blocks, layout::backwards, layout::turns, layout::uneven,
                              layout::random};

std::vector<std::int32_t> draw(layout how, std::mt19937& random) {
  std::vector<std::int32_t> node_of_rank(1 + random() % 24);
  const std::uint32_t nodes = 1 + random() % 6, each = 1 + random() % 8;
  std::uint32_t r = 0, node = 0;
  for (std::int32_t& of_rank : node_of_rank) {
    switch (how) {
      case layout::blocks:
        node = r / each;
        break;
      case layout::backwards:
        node = 100 - r / each;
        break;
      case layout::turns:
        node = r % nodes;
        break;
      case layout::uneven:
        node += random() % 3 == 0 ? 1 : 0;
        break;
      case layout::random:
        node = random() % nodes;
    }
    of_rank = std::int32_t(7 * node);
    ++r;
  }
  return node_of_rank;
}

}  // namespace

TEST_CASE("the order of nodes is the one in tables, whatever the placement") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  for (int k = 0; k < 2000; ++k) {
    const std::vector<std::int32_t> node_of_rank = draw(layouts[k % 5], random);
    node_order order(node_of_rank);
    CAPTURE(node_of_rank);
    REQUIRE(same(order.facts(), count(node_of_rank)));
    const auto p = std::int32_t(node_of_rank.size());
    for (int turn = 0; turn < 3; ++turn) {
      const auto root = std::int32_t(random() % std::uint32_t(p));
      CAPTURE(root);
      const order_in_tables expected(node_of_rank, root);
      order.begin_with(root);
      REQUIRE(order.ranks().num_ranks() == p);
      for (std::int32_t v = 0; v < p; ++v) {
        REQUIRE(order.ranks()[v] == expected.physical[std::size_t(v)]);
        REQUIRE(order.ranks().virtual_rank(order.ranks()[v]) == v);
      }
      const group_begins& begins = order.begins();
      REQUIRE(begins.listed() == expected.begins);
      REQUIRE(begins.num_ranks() == p);
      for (std::int32_t n = 0; n < begins.num_groups(); ++n)
        for (std::int32_t v = begins[n]; v < begins[n + 1]; ++v) REQUIRE(begins.group_of(v) == n);
    }
  }
}

TEST_CASE("a placement tells where each rank is on its node") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  for (int k = 0; k < 1000; ++k) {
    const std::vector<std::int32_t> node_of_rank = draw(layouts[k % 5], random);
    CAPTURE(node_of_rank);
    placement where(std::int32_t(node_of_rank.size()));
    where.set([&](std::int32_t r) { return node_of_rank[std::size_t(r)]; });
    std::map<std::int32_t, std::int32_t> number_of, ranks_on;
    for (std::int32_t r = 0; r < where.num_ranks(); ++r) {
      const std::int32_t node = node_of_rank[std::size_t(r)];
      const std::int32_t number =
          number_of.try_emplace(node, std::int32_t(number_of.size())).first->second;
      REQUIRE(where.node_of(r) == number);
      REQUIRE(where.local_rank(r) == ranks_on[number]++);
    }
    for (const auto& [number, ranks] : ranks_on) REQUIRE(where.ranks_on(number) == ranks);
  }
}

TEST_CASE(
    "no table is kept of nodes in blocks, whatever their numbers, and no list of equal ones") {
  const auto bytes_of = [](std::int32_t p, const auto& node_of) {
    placement where(p);
    where.set(node_of);
    return where.memory_bytes() - sizeof where;
  };
  for (const std::int32_t p : {8, 1000, 100000}) {
    CHECK(bytes_of(p, [](std::int32_t r) { return r / 3; }) == 0);
    CHECK(bytes_of(p, [](std::int32_t r) { return -(r / 3); }) == 0);
    CHECK(bytes_of(p, [](std::int32_t) { return 5; }) == 0);
    // The first node has one rank less.
    CHECK(bytes_of(p, [](std::int32_t r) { return (r + 1) / 4; }) > 0);
    CHECK(bytes_of(p, [](std::int32_t r) { return r % 4; }) > 0);
  }
}

TEST_CASE(
    "communicators with the same placement share its tables for as long as one of them lives") {
  known_placements known;
  const auto made = [](std::int32_t num_ranks, std::int32_t nodes) {
    const auto where = std::make_shared<placement>(num_ranks);
    where->set([&](std::int32_t r) { return r % nodes; });
    return where;
  };
  std::shared_ptr<const placement> first = known.share(made(12, 3));
  const std::weak_ptr<const placement> watched = first;
  CHECK(known.share(made(12, 3)) == first);
  CHECK(known.share(made(12, 4)) != first);
  CHECK(known.share(made(15, 3)) != first);
  first.reset();
  CHECK(watched.expired());
  CHECK(known.share(made(12, 3)) != nullptr);
}

TEST_CASE("equal nodes are the same from whatever node on, others are not") {
  const auto from = [](std::int32_t num_ranks, std::int32_t each, std::int32_t first) {
    return group_begins::blocks(num_ranks, each).beginning_with(first);
  };
  CHECK(from(12, 3, 0) == from(12, 3, 2));
  CHECK(from(12, 3, 0).hash() == from(12, 3, 2).hash());
  CHECK(from(11, 3, 0) != from(11, 3, 2));
  CHECK(from(12, 3, 0) != from(12, 4, 0));
  const std::vector<std::int32_t> list{0, 3, 6, 9, 12}, copied = list;
  CHECK(group_begins(list) == group_begins(list));
  CHECK(group_begins(list) != group_begins(copied));
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
  CHECK(order.ranks().empty());
  CHECK(order.begins().empty());
}
