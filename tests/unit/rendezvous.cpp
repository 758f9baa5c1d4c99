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
    numbered_messages large(std::uint32_t(0) - std::uint32_t(random() % 40));
    std::map<std::uint32_t, message_ptr> numbered;
    for (int k = 0; k < 200; ++k) {
      const int peer = int(random() % 3);
      const auto id = std::uint32_t(random() % 80) - 40;
      switch (random() % 4) {
        case 0: {
          const auto op = std::make_shared<message>(
              peer, 0, 0, std::vector<piece>{{memory.data(), memory.size()}}, nullptr);
          REQUIRE(numbered.emplace(large.add(op), op).second);
          break;
        }
        case 1:
          REQUIRE(!numbered.contains(large.next_id()));
          break;
        default: {
          const auto found = numbered.find(id);
          const bool right = found != numbered.end() && found->second->peer() == peer;
          REQUIRE(large.find(peer, id) == (right ? found->second : nullptr));
          if (!right || random() % 2 == 0) break;
          large.remove(id);
          numbered.erase(found);
          REQUIRE(!large.find(peer, id));
          break;
        }
      }
      REQUIRE(large.empty() == numbered.empty());
      std::multiset<const message*> kept, visited;
      for (const auto& [of, op] : numbered) kept.insert(op.get());
      large.for_each([&](const message& op) { visited.insert(&op); });
      REQUIRE(visited == kept);
    }
  }
}
