// SPDX-License-Identifier: BSL-1.0
//
// Numbers of large messages, against a plain list of those that have one.
#include "railpass/transport/rendezvous.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <map>
#include <random>
#include <set>
#include <vector>

using namespace railpass::transport;

TEST_CASE("a number names one message of one peer, also where numbers begin anew") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::vector<std::byte> memory(1000);
  for (int round = 0; round < 100; ++round) {
    rendezvous large(std::uint32_t(0) - std::uint32_t(random() % 40));
    std::map<std::uint32_t, message_ptr> announced, expected;
    for (int k = 0; k < 200; ++k) {
      const int peer = int(random() % 3);
      const std::size_t n = random() % 1000;
      const auto id = std::uint32_t(random() % 80) - 40;
      switch (random() % 4) {
        case 0: {
          const auto op = std::make_shared<message>(
              peer, 0, 0, std::vector<piece>{{memory.data(), n}}, nullptr);
          REQUIRE(announced.emplace(large.announce(op), op).second);
          break;
        }
        case 1: {
          const auto op =
              std::make_shared<message>(peer, 0, 0, std::vector<piece>{{memory.data(), n}});
          op->start(peer, 0, std::int64_t(random() % 4 == 0 ? 0 : n));
          const std::uint32_t mine = large.expect(op);
          REQUIRE(!expected.contains(mine));
          if (op->bytes() > 0) expected.emplace(mine, op);
          break;
        }
        case 2: {
          const auto found = announced.find(id);
          const bool right = found != announced.end() && found->second->peer() == peer &&
                             std::int64_t(n) <= found->second->bytes();
          const message_ptr got = large.take_announced(peer, id, std::int64_t(n));
          REQUIRE(got == (right ? found->second : nullptr));
          if (right) announced.erase(found);
          break;
        }
        case 3: {
          const auto found = expected.find(id);
          const bool right = found != expected.end() && found->second->peer() == peer;
          REQUIRE(large.expected(peer, id) == (right ? found->second : nullptr));
          if (!right || random() % 2 == 0) break;
          large.end(id);
          expected.erase(found);
          REQUIRE(!large.expected(peer, id));
          break;
        }
      }
      REQUIRE(large.all_taken() == announced.empty());
      std::set<int> awaited, told;
      for (const auto* const some : {&announced, &expected})
        for (const auto& [of, op] : *some) awaited.insert(op->peer());
      large.mark_awaited([&](int p) { told.insert(p); });
      REQUIRE(told == awaited);
    }
  }
}
