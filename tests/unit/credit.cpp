// SPDX-License-Identifier: BSL-1.0
//
// Credit is neither made nor lost, bounds what is kept, and says who can send nothing more.
#include "railpass/transport/credit.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <deque>
#include <random>
#include <vector>

using namespace railpass::transport;

TEST_CASE("credit is conserved, bounds what is kept, and both ends know when there is none") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  int starved = 0, waited = 0;
  for (int round = 0; round < 200; ++round) {
    const auto small = std::int64_t(random() % 3000);
    const std::int64_t given =
        16 * credit_account::message_bytes + 2 * small + std::int64_t(random() % 20000);
    credit_account sender(given, small), receiver(given, small);
    std::deque<packet> coming;            // to the receiver
    std::deque<std::uint32_t> returning;  // to the sender
    std::vector<packet> kept;
    std::int64_t left = given, kept_bytes = 0;  // an account of its own
    const auto pay = [&] {
      if (const std::uint32_t bytes = receiver.pay(); bytes > 0) returning.push_back(bytes);
    };
    for (int k = 0; k < 500; ++k) {
      switch (random() % 5) {
        case 0:
        case 1: {
          const std::uint64_t length = random() % 2 == 0 ? 0 : random() % 3000;
          const packet h = packet::eager(0, 0, 0, length, false);
          const std::int64_t cost = std::int64_t(length) + 256;
          REQUIRE(credit_account::cost_of(h) == cost);
          REQUIRE(sender.allows() == (left >= 256 + small));
          REQUIRE(sender.allows_whole(std::int64_t(length)) == (cost <= left));
          if (!sender.allows() || !sender.allows_whole(std::int64_t(length))) {
            ++waited;
            break;
          }
          sender.spend(h);
          left -= cost;
          coming.push_back(h);
          break;
        }
        case 2:
          if (coming.empty()) break;
          REQUIRE(receiver.keep(coming.front()));
          kept_bytes += credit_account::cost_of(coming.front());
          kept.push_back(coming.front());
          coming.pop_front();
          REQUIRE(kept_bytes <= given);
          break;
        case 3:
          if (kept.empty() || random() % 3 != 0) break;
          kept_bytes -= credit_account::cost_of(kept.back());
          if (receiver.owe(credit_account::cost_of(kept.back()))) pay();
          kept.pop_back();
          break;
        case 4:
          if (random() % 4 == 0) pay();
          if (returning.empty()) break;
          left += returning.front();
          REQUIRE(sender.regain(returning.front()));
          returning.pop_front();
          break;
      }
      // With nothing under way the sender is starved if and only if the receiver says so.
      if (receiver.is_starved()) {
        ++starved;
        REQUIRE((coming.empty() && (!returning.empty() || !sender.allows())));
      } else if (coming.empty() && returning.empty()) {
        REQUIRE(sender.allows());
      }
    }
    // Once all has come and been received, all credit is back, and no more.
    for (const packet& h : coming) REQUIRE(receiver.keep(h));
    kept.insert(kept.end(), coming.begin(), coming.end());
    for (const packet& h : kept) receiver.owe(credit_account::cost_of(h));
    pay();
    for (const std::uint32_t bytes : returning) REQUIRE(sender.regain(bytes));
    CHECK(sender.allows_whole(given - 256));
    CHECK(!sender.allows_whole(given - 255));
    CHECK(receiver.pay() == 0);
  }
  CHECK(starved > 1000);
  CHECK(waited > 1000);
}

TEST_CASE(
    "with any credit left, the receiver asks if and only if a small message could not leave") {
  constexpr std::int64_t given = 5000, small = 700;
  for (std::uint64_t spent = 0; spent <= given - 256; ++spent) {
    credit_account sender(given, small), receiver(given, small);
    const packet h = packet::eager(0, 0, 0, spent, false);
    sender.spend(h);
    REQUIRE(receiver.keep(h));
    REQUIRE(sender.allows() == !receiver.is_starved());
    REQUIRE(sender.allows() == sender.allows_whole(small));
    // A sender that has nothing left gets it back once the receiver keeps nothing.
    REQUIRE((receiver.owe(credit_account::cost_of(h)) || sender.allows()));
  }
}

TEST_CASE("credit that nobody spent, and messages that nobody had credit for, are noticed") {
  credit_account mine(10000, 0);
  CHECK(mine.regain(0));
  CHECK(!mine.regain(1));
  credit_account other(10000, 0);
  for (int k = 0; k < 3; ++k) CHECK(other.keep(packet::eager(0, 0, 0, 3000, false)));
  CHECK(!other.keep(packet::request(0, 0, 0, 0, 1)));
  // Half of it goes back by itself.
  credit_account third(10000, 0);
  CHECK(!third.owe(4999));
  CHECK(third.owe(1));
  CHECK(third.pay() == 5000);
}
