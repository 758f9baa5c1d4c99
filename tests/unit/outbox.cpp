// SPDX-License-Identifier: BSL-1.0
//
// Messages that wait for a rail leave in order, and every byte leaves exactly once.
#include "railpass/transport/outbox.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <random>

using namespace railpass::transport;

TEST_CASE(
    "large messages are cut into parts that have every byte once, whichever rails take them") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    outbox waiting;
    std::vector<std::vector<std::byte>> memory(1 + random() % 5);
    std::vector<message_ptr> all;
    std::vector<std::int64_t> wanted, given;
    for (auto& b : memory) {
      b.resize(1 + random() % 100);
      const std::size_t half = b.size() / 2;
      all.push_back(std::make_shared<message>(
          1, 0, 0, std::vector<piece>{{b.data(), half}, {b.data() + half, b.size() - half}},
          nullptr));
      wanted.push_back(std::int64_t(1 + random() % b.size()));
      given.push_back(0);
      all.back()->grant(std::uint32_t(all.size()), wanted.back(), 3);
      waiting.add_granted(all.back());
    }
    while (!waiting.empty()) {
      const std::size_t rail = random() % 3;
      std::int64_t waiting_bytes = 0;
      for (std::size_t k = 0; k < all.size(); ++k) waiting_bytes += wanted[k] - given[k];
      // Asks about each message with bytes left, until one should go.
      std::size_t asked = 0;
      std::int64_t share = 0;
      const auto part = waiting.take_part(rail, [&](const large_view& l) {
        while (given[asked] == wanted[asked]) ++asked;
        REQUIRE(l.bytes == wanted[asked]);
        REQUIRE(l.left_bytes == wanted[asked] - given[asked]);
        REQUIRE(l.waiting_bytes == waiting_bytes);
        share = random() % 2 == 0 ? 0 : std::int64_t(1 + random() % std::uint64_t(l.left_bytes));
        if (share == 0) ++asked;
        return share;
      });
      REQUIRE(part.has_value() == (share > 0));
      if (!part) continue;
      REQUIRE(part->whole == all[asked]);
      REQUIRE(part->offset_bytes == given[asked]);
      REQUIRE(part->bytes == share);
      std::int64_t at = given[asked];
      for (const piece& p : part->payload) {
        REQUIRE(p.data == memory[asked].data() + at);
        at += std::int64_t(p.bytes);
      }
      given[asked] += share;
      REQUIRE(at == given[asked]);
    }
    CHECK(given == wanted);
  }
}

TEST_CASE("small messages are numbered as they leave, control packets leave together") {
  outbox waiting;
  CHECK(waiting.empty());
  std::vector<message_ptr> all;
  for (int k = 0; k < 5; ++k) {
    all.push_back(std::make_shared<message>(1, k, 0, std::vector<piece>(), nullptr));
    waiting.add(all.back());
  }
  waiting.add_control(packet::credit_alone());
  waiting.add_control(packet::grant(1, 2, 3));
  for (std::uint32_t k = 0; k < 5; ++k) {
    CHECK(waiting.num_small() == 5 - k);
    CHECK(waiting.small(0).tag() == int(k));
    const auto [op, sequence] = waiting.take_small();
    CHECK(op == all[k]);
    CHECK(sequence == k);
  }
  CHECK((waiting.has_control() && !waiting.empty()));
  std::vector<packet> control;
  waiting.take_control([&](const packet& p) { control.push_back(p); });
  CHECK(control == std::vector{packet::credit_alone(), packet::grant(1, 2, 3)});
  CHECK((!waiting.has_control() && waiting.empty()));
}

TEST_CASE("without credit what is wanted leaves first, in order, and may come back to its place") {
  outbox waiting;
  std::vector<std::byte> memory(8, std::byte{1});
  std::vector<message_ptr> all;
  const auto add = [&](channel on, int tag, std::size_t bytes = 8) {
    all.push_back(
        std::make_shared<message>(1, tag, on, std::vector<piece>{{memory.data(), bytes}}, nullptr));
    waiting.add(all.back());
  };
  const auto take = [&] { return waiting.take_wanted(4); };
  add(0, 1);     // 0
  add(0, 2);     // 1
  add(5, 2);     // 2
  add(0, 2, 4);  // 3
  CHECK(!take());
  waiting.note_want(0, 2);
  waiting.note_want(5, any_tag);
  // In the order of their start, and not two at the same time.
  const auto first = take();
  REQUIRE(first);
  CHECK((first->op == all[1] && first->sequence == 0 && first->overtakes));
  CHECK((waiting.awaits_answer() && !take()));
  CHECK(!waiting.take_back(all[2]));
  waiting.note_want(0, 2);  // which comes meanwhile
  CHECK(waiting.take_back(all[1]));
  CHECK(!waiting.take_back(all[1]));
  const auto again = take();
  REQUIRE(again);
  CHECK((again->op == all[1] && again->sequence == 1));
  waiting.note_taken(*all[0]);
  CHECK(waiting.awaits_answer());
  waiting.note_taken(*all[1]);
  const auto other = take();
  REQUIRE(other);
  CHECK((other->op == all[2] && !other->overtakes));
  waiting.note_taken(*all[2]);
  // The wanted message has not been started: senders need not wait for the small messages.
  waiting.note_want(7, 7);
  CHECK(!take());
  CHECK((!all[0]->done() && all[3]->done()));
  memory.assign(8, std::byte{2});
  std::vector<piece> part;
  all[3]->cut_all(part);
  CHECK((bytes_of(part) == 4 && part[0].data[3] == std::byte{1}));
  add(7, 7);
  const auto begun = take();
  REQUIRE(begun);
  CHECK((begun->op == all[4] && !begun->overtakes && !all[4]->done()));
  waiting.note_taken(*all[4]);
  // With credit, messages leave in order, and no message is wanted any more.
  waiting.note_want(0, 2);
  waiting.forget_wants();
  CHECK(!take());
  for (const std::uint32_t k : {0u, 3u}) CHECK(waiting.take_small().first == all[k]);
  CHECK(waiting.empty());
}
