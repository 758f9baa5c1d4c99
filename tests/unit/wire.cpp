// SPDX-License-Identifier: BSL-1.0
//
// Headers of packets: what is packed is parsed, and nothing else is.
#include "railpass/transport/wire.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <random>

using namespace railpass::transport;

namespace {

packet valid_packet(std::mt19937_64& random) {
  packet p;
  p.type = packet_type(1 + random() % 12);
  p.credit = std::uint32_t(random());
  switch (p.type) {
    case packet_type::eager:
      p.id = std::uint32_t(random() % 2);
      p.length = random() % (most_eager_bytes + 1);
      break;
    case packet_type::request:
      p.id = std::uint32_t(random());
      p.value = 1 + random() % most_message_bytes;
      break;
    case packet_type::offer:
    case packet_type::overtaken:
      p.id = std::uint32_t(random());
      p.value = random() % (most_message_bytes + 1);
      break;
    case packet_type::want:
      p.other_id = std::uint32_t(random());
      p.value = random() % 2;
      if (p.value == 0) p.tag = std::int32_t(random() >> 33);
      break;
    case packet_type::decline:
      p.id = std::uint32_t(random());
      break;
    case packet_type::grant:
      p.id = std::uint32_t(random());
      p.other_id = std::uint32_t(random());
      p.value = random() % (most_message_bytes + 1);
      break;
    case packet_type::chunk:
      p.id = std::uint32_t(random() % 2);
      p.other_id = std::uint32_t(random());
      p.length = 1 + random() % most_payload_bytes;
      p.value = random() % (most_message_bytes - p.length + 1);
      break;
    case packet_type::rate:
      p.id = std::uint32_t(random());
      p.other_id = std::uint32_t(random() % 2);
      p.value = 1 + (random() >> 1);
      break;
    case packet_type::probe:
      p.id = std::uint32_t(random() % 2);
      p.length = random() % (most_eager_bytes + 1);
      break;
    case packet_type::credit:
    case packet_type::farewell:
      break;
  }
  if (p.begins_message()) {
    p.tag = std::int32_t(random() >> 33);
    p.sequence = std::uint32_t(random());
    p.other_id = std::uint32_t(random());
  }
  return p;
}

}  // namespace

TEST_CASE("the layout of a header is fixed") {
  const packed_header h = pack({.type = packet_type::chunk,
                                .credit = 0x01020304,
                                .id = 1,
                                .other_id = 0x0a0b0c0d,
                                .value = 0x1112131415161718 >> 8,
                                .length = 0x123456});
  const unsigned char expected[header_bytes] = {
      0x52, 0x70, 7,    4,    4,    3,    2,    1, 0,    0,    0,    0,
      0,    0,    0,    0,    1,    0,    0,    0, 0x0d, 0x0c, 0x0b, 0x0a,
      0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0, 0x56, 0x34, 0x12};
  for (std::size_t i = 0; i < header_bytes; ++i) CHECK(unsigned(h[i]) == expected[i]);
}

TEST_CASE("each type of packet has its own meaning of the fields") {
  const auto is = [](const packet& made, const packet& expected) {
    CHECK(made == expected);
    CHECK(parse(pack(made)) == expected);
  };
  is(packet::eager(5, 6, 7, 8, true),
     {.type = packet_type::eager, .tag = 6, .sequence = 7, .id = 1, .other_id = 5, .length = 8});
  is(packet::request(5, 6, 7, 8, 9),
     {.type = packet_type::request, .tag = 6, .sequence = 7, .id = 8, .other_id = 5, .value = 9});
  is(packet::offer(5, 6, 7, 8, 9, false),
     {.type = packet_type::offer, .tag = 6, .sequence = 7, .id = 8, .other_id = 5, .value = 9});
  is(packet::offer(5, 6, 7, 8, 0, true),
     {.type = packet_type::overtaken, .tag = 6, .sequence = 7, .id = 8, .other_id = 5});
  is(packet::want(5, 6), {.type = packet_type::want, .tag = 6, .other_id = 5});
  is(packet::want(5, -1), {.type = packet_type::want, .other_id = 5, .value = 1});
  is(packet::decline(5), {.type = packet_type::decline, .id = 5});
  is(packet::grant(5, 6, 7), {.type = packet_type::grant, .id = 5, .other_id = 6, .value = 7});
  is(packet::chunk(5, 6, 7, true),
     {.type = packet_type::chunk, .id = 1, .other_id = 5, .value = 6, .length = 7});
  is(packet::credit_alone(), {.type = packet_type::credit});
  is(packet::rate(5, 6, true), {.type = packet_type::rate, .id = 5, .other_id = 1, .value = 6});
  is(packet::farewell(), {.type = packet_type::farewell});
  is(packet::probe(5, true), {.type = packet_type::probe, .id = 1, .length = 5});

  const packet small = packet::eager(5, 6, 7, 8, false), large = packet::request(5, 6, 7, 8, 9);
  CHECK((small.begins_message() && small.on() == 5 && small.message_bytes() == 8));
  CHECK((large.begins_message() && large.on() == 5 && large.message_bytes() == 9));
  const packet asked = packet::grant(8, 10, 9), part = packet::chunk(10, 4, 5, true);
  CHECK((asked.sender_id() == large.sender_id() && asked.wanted_bytes() == 9));
  CHECK((part.receiver_id() == asked.receiver_id() && part.offset_bytes() == 4));
  CHECK((part.rail_was_busy() && !small.rail_was_busy() && packet::probe(1, true).rail_was_busy()));
  const packet told = packet::rate(2, 3, true);
  CHECK((told.rail() == 2 && told.bytes_per_s() == 3 && told.of_probe()));
  CHECK(!packet::rate(2, 3, false).of_probe());
  const packet offered = packet::offer(5, 6, 7, 8, 9, true), wanted = packet::want(5, 6);
  CHECK((offered.begins_message() && offered.is_offer() && offered.message_bytes() == 9));
  CHECK((!small.is_offer() && !large.is_offer()));
  CHECK((wanted.on() == 5 && wanted.tag == 6 && !wanted.of_any_tag()));
  CHECK(packet::want(5, -1).of_any_tag());
  for (const packet& other :
       {asked, part, packet::credit_alone(), told, packet::farewell(), wanted, packet::decline(8)})
    CHECK(!other.begins_message());
}

TEST_CASE("headers survive the way, and damaged ones are refused or mean what they say") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  int refused = 0;
  for (int round = 0; round < 200000; ++round) {
    const packet p = valid_packet(random);
    packed_header h = pack(p);
    REQUIRE(parse(h) == p);
    // Bits turned over: what is still accepted has valid lengths and packs to the same bytes.
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips)
      h[random() % header_bytes] ^= std::byte(1 << (random() % 8));
    if (const auto damaged = parse(h)) {
      REQUIRE(pack(*damaged) == h);
      REQUIRE(damaged->length <= most_payload_bytes);
      REQUIRE(damaged->value + damaged->length >= damaged->length);
      if (damaged->type == packet_type::eager || damaged->type == packet_type::probe)
        REQUIRE(damaged->length <= most_eager_bytes);
      if (damaged->type == packet_type::chunk)
        REQUIRE(damaged->value + damaged->length <= most_message_bytes);
    } else {
      ++refused;
    }
    std::generate(h.begin(), h.end(), [&] { return std::byte(random()); });
    if (const auto noise = parse(h)) CHECK(pack(*noise) == h);
  }
  CHECK(refused > 20000);
}
