// SPDX-License-Identifier: BSL-1.0
//
// Matching of receives and messages, compared with plain lists.
#include "railpass/transport/matching.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

using namespace railpass::transport;

namespace {

message_ptr a_receive(int source, int tag) {
  return std::make_shared<message>(source, tag, 0, std::vector<piece>());
}
envelope_ptr a_message(int source, int tag, std::uint32_t sequence = 0) {
  auto e = std::make_shared<envelope>();
  e->source = source;
  e->header = packet::eager(0, tag, sequence, 0, false);
  return e;
}

}  // namespace

TEST_CASE("the first receive that was posted meets the first message that it may take") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto meet = [](const message_ptr& r, const envelope_ptr& e) {
    return (r->peer() == any_source || r->peer() == e->source) &&
           (r->tag() == any_tag || r->tag() == e->header.tag);
  };
  int met = 0;
  for (int round = 0; round < 200; ++round) {
    mailbox box;
    std::vector<message_ptr> receives;
    std::vector<envelope_ptr> messages;
    for (int k = 0; k < 100; ++k) {
      if (random() % 2 == 0) {
        const message_ptr r = a_receive(int(random() % 4) - 1, int(random() % 4) - 1);
        const auto first = std::find_if(messages.begin(), messages.end(),
                                        [&](const envelope_ptr& e) { return meet(r, e); });
        const envelope_ptr got = box.take_unexpected(*r);
        REQUIRE(got == (first == messages.end() ? nullptr : *first));
        if (got) {
          messages.erase(first);
          ++met;
        } else {
          box.post(r);
          receives.push_back(r);
        }
      } else {
        const envelope_ptr e = a_message(int(random() % 3), int(random() % 3));
        const auto first = std::find_if(receives.begin(), receives.end(),
                                        [&](const message_ptr& r) { return meet(r, e); });
        const message_ptr got = box.take_posted(e->source, e->header);
        REQUIRE(got == (first == receives.end() ? nullptr : *first));
        if (got) {
          receives.erase(first);
          ++met;
        } else {
          box.keep(e);
          messages.push_back(e);
        }
      }
      REQUIRE(
          std::equal(receives.begin(), receives.end(), box.posted().begin(), box.posted().end()));
    }
    const std::deque<envelope_ptr> left = box.take_all_unexpected();
    CHECK(std::equal(messages.begin(), messages.end(), left.begin(), left.end()));
    CHECK(box.take_all_unexpected().empty());
  }
  CHECK(met > 5000);
}

TEST_CASE("what has overtaken meets no receive that may be for what it has overtaken") {
  mailbox box;
  const packet overtaken = packet::offer(0, 1, 0, 0, 8, true),
               in_order = packet::offer(0, 1, 0, 0, 8, false);
  const message_ptr before = a_receive(0, 1), of_another = a_receive(2, any_tag),
                    any = a_receive(any_source, any_tag), behind = a_receive(0, 1);
  for (const message_ptr& r : {before, of_another, any, behind}) box.post(r);
  CHECK(box.take_posted(0, overtaken) == before);
  // An overtaken message may be for another receive, and the overtaking one for a receive of any
  // tag.
  CHECK(box.take_posted(0, overtaken) == nullptr);
  CHECK(box.take_posted(0, in_order) == any);
  CHECK(box.take_posted(0, overtaken) == behind);
}

TEST_CASE("messages are handed on in the order of their numbers, each once, however they come") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    turns order;
    std::vector<std::uint32_t> to_come(1 + random() % 60);
    std::iota(to_come.begin(), to_come.end(), 0u);
    for (std::size_t k = to_come.size(); k > 1; --k)  // near their places, some far
      std::swap(to_come[k - 1], to_come[k - 1 - random() % std::min<std::size_t>(k, 8)]);
    std::set<std::uint32_t> came;
    std::uint32_t next = 0;
    for (const std::uint32_t sequence : to_come) {
      const auto any = std::uint32_t(random() % to_come.size());
      REQUIRE(order.is_new(any) == !came.contains(any));
      came.insert(sequence);
      REQUIRE(order.is_next(sequence) == (sequence == next));
      if (!order.is_next(sequence)) {
        order.keep(a_message(1, 0, sequence));
        REQUIRE(order.take_next() == nullptr);
        continue;
      }
      order.pass();
      ++next;
      while (const envelope_ptr e = order.take_next()) REQUIRE(e->header.sequence == next++);
      REQUIRE(!came.contains(next));
    }
    CHECK(next == to_come.size());
    CHECK(!order.is_new(0xffffffff));  // behind, where numbers begin anew
  }
}
