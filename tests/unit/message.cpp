// SPDX-License-Identifier: BSL-1.0
//
// A message on its way: its memory in pieces, which of its parts have come, when it has left.
#include "railpass/transport/message.hpp"

#include "railpass/transport/under_way.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <random>

using namespace railpass::transport;

namespace {

using bytes = std::vector<std::byte>;

std::vector<piece> in_pieces(bytes& b, std::mt19937_64& random) {
  std::vector<piece> result;
  for (std::size_t at = 0; at < b.size();) {
    const std::size_t n = std::min<std::size_t>(b.size() - at, random() % (b.size() / 3 + 2));
    result.push_back({b.data() + at, n});
    at += n;
  }
  return result;
}

bytes noise(std::size_t n, std::mt19937_64& random) {
  bytes b(n);
  for (std::byte& value : b) value = std::byte(random());
  return b;
}

}  // namespace

TEST_CASE("pieces are cut and copied as if they stood together") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    bytes whole = noise(random() % 100, random);
    const std::vector<piece> pieces = in_pieces(whole, random);
    const auto size = std::int64_t(whole.size());
    REQUIRE(bytes_of(pieces) == size);
    const auto from = std::int64_t(random() % std::uint64_t(size + 1));
    const auto n = std::int64_t(random() % std::uint64_t(size - from + 1));
    std::vector<piece> part;
    cut(pieces, from, n, part);
    bytes joined;
    for (const piece& p : part) joined.insert(joined.end(), p.data, p.data + p.bytes);
    REQUIRE(joined == bytes(whole.begin() + from, whole.begin() + from + n));

    bytes to(whole.size());
    copy(pieces, n, in_pieces(to, random));
    bytes expected(whole.begin(), whole.begin() + n);
    expected.resize(whole.size());
    REQUIRE(to == expected);
    const bytes other = noise(std::size_t(n), random);
    copy(other.data(), n, in_pieces(to, random), from);
    std::copy(other.begin(), other.end(), expected.begin() + from);
    REQUIRE(to == expected);
  }
}

TEST_CASE("parts of a message are taken once and inside of it, as a byte by byte account says") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::int64_t total = 1 + std::int64_t(random() % 60);
    bytes memory(std::size_t(total), std::byte{0});
    message op(any_source, any_tag, 0, {{memory.data(), memory.size()}});
    op.start(3, 4, total);
    std::vector<bool> came(std::size_t(total), false);
    for (std::int64_t left = total; left > 0;) {
      const auto begins = std::int64_t(random() % std::uint64_t(total));
      const auto ends = begins + 1 + std::int64_t(random() % 8);
      bool fits = ends <= total;
      for (std::int64_t k = begins; fits && k < ends; ++k) fits = !came[std::size_t(k)];
      REQUIRE(op.take_part(begins, ends) == fits);
      if (!fits) {
        ++refused;
        continue;
      }
      for (std::int64_t k = begins; k < ends; ++k) came[std::size_t(k)] = true;
      left -= ends - begins;
      REQUIRE(op.part_arrived(ends - begins) == (left == 0));
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE(
    "what is longer than its memory is cut off, and memory may be made when the size is known") {
  bytes memory(10);
  message op(any_source, 7, 0, {{memory.data(), memory.size()}});
  CHECK((op.fits(5, packet::eager(0, 7, 0, 0, false)) &&
         !op.fits(5, packet::eager(0, 8, 0, 0, false))));
  op.start(5, 7, 11);
  CHECK((op.truncated() && op.bytes() == 10 && op.peer() == 5));
  message made(2, any_tag, 0, [&](std::int64_t n) {
    memory.resize(std::size_t(n));
    return piece{memory.data(), memory.size()};
  });
  CHECK((made.fits(2, packet::eager(0, 8, 0, 0, false)) &&
         !made.fits(1, packet::eager(0, 8, 0, 0, false))));
  made.start(2, 8, 1000);
  CHECK((!made.truncated() && made.bytes() == 1000 && bytes_of(made.pieces()) == 1000));
  message nobody;
  nobody.start(1, 1, 100);
  CHECK((nobody.bytes() == 0 && nobody.truncated()));
}

TEST_CASE("a message has left when all of it was given away and no packet needs its memory") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    packets_under_way under_way;
    struct account {
      message_ptr op;
      std::int64_t packets = 0;
    };
    std::vector<account> all;
    std::vector<bytes> memory(1 + random() % 4, bytes(50));
    for (bytes& b : memory) {
      all.push_back({std::make_shared<message>(int(all.size()), 0, 0,
                                               std::vector<piece>{{b.data(), b.size()}}, nullptr)});
      all.back().op->grant(9, std::int64_t(1 + random() % 50), 2);
    }
    std::vector<std::pair<std::uint64_t, std::size_t>> tokens;
    std::size_t gone = 0;
    while (gone < all.size()) {
      const std::size_t k = random() % all.size();
      if (const std::int64_t left = all[k].op->left_bytes(); left > 0 && random() % 2 == 0) {
        std::vector<piece> part;
        all[k].op->cut_next(random() % 2, 1 + std::int64_t(random() % std::uint64_t(left)), part);
        tokens.emplace_back(under_way.add(all[k].op), k);
        REQUIRE(tokens.back().first != 0);
        ++all[k].packets;
      } else if (!tokens.empty()) {
        const std::size_t which = random() % tokens.size();
        const auto [token, owner] = tokens[which];
        tokens.erase(tokens.begin() + std::ptrdiff_t(which));
        const message_ptr left_now = under_way.remove(token);
        const bool expected = --all[owner].packets == 0 && all[owner].op->left_bytes() == 0;
        REQUIRE((left_now == all[owner].op) == expected);
        REQUIRE((left_now == nullptr) != expected);
        gone += expected ? 1 : 0;
      }
      REQUIRE(under_way.empty() == tokens.empty());
    }
    for (const account& a : all)
      CHECK(a.op->carried_bytes()[0] + a.op->carried_bytes()[1] == a.op->bytes());
  }
}
