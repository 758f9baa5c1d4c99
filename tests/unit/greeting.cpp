// SPDX-License-Identifier: BSL-1.0
//
// Greetings: what is packed is parsed, and nothing else is; a proof holds for one connection only.
#include "lib/rails/tcp/greeting.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <random>

using namespace railpass::internal::tcp;

namespace {

introduction some(std::mt19937_64& random) {
  introduction i{
      .epoch = random(), .rank = std::uint32_t(random()), .rail = std::uint32_t(random())};
  for (unsigned char& c : i.nonce) c = static_cast<unsigned char>(random());
  return i;
}

}  // namespace

TEST_CASE("introductions come back from their bytes, and other bytes are none") {
  std::mt19937_64 random(1);
  for (int k = 0; k < 20000; ++k) {
    const introduction i = some(random);
    packed_introduction bytes = pack(i);
    CHECK(parse_introduction(bytes) == i);
    for (std::size_t flips = random() % 4 + 1; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<unsigned char>(1 + random() % 255);
    if (const auto other = parse_introduction(bytes)) REQUIRE(pack(*other) == bytes);
    for (unsigned char& c : bytes) c = static_cast<unsigned char>(random());
    CHECK_FALSE(parse_introduction(bytes));
  }
}

TEST_CASE("a proof is of one key, end, epoch, rail, pair of ranks and pair of nonces") {
  std::mt19937_64 random(2);
  const secret ours{.key = random_word(), .epoch = 7};
  const introduction caller = some(random), listener = some(random);
  const word shown = proof(ours, end::caller, caller, listener);
  CHECK(equal(shown, proof(ours, end::caller, caller, listener)));
  CHECK_FALSE(equal(shown, proof(ours, end::listener, caller, listener)));
  CHECK_FALSE(equal(shown, proof(ours, end::caller, listener, caller)));
  CHECK_FALSE(
      equal(shown, proof({.key = random_word(), .epoch = 7}, end::caller, caller, listener)));
  for (const bool of_caller : {true, false})
    for (int field = 0; field < 4; ++field) {
      introduction c = caller, l = listener;
      introduction& changed = of_caller ? c : l;
      if (field == 0) ++changed.epoch;
      if (field == 1) ++changed.rank;
      if (field == 2) ++changed.rail;
      if (field == 3) changed.nonce = random_word();
      CHECK_FALSE(equal(shown, proof(ours, end::caller, c, l)));
    }
}

TEST_CASE("proofs are HMACs with SHA-256 (RFC 2104), as other programs make them") {
  // In Python: hmac.new(bytes(32), b"c" + 2 * (b"railpass\2" + bytes(55)), "sha256")
  const word shown = proof({}, end::caller, {}, {});
  const unsigned char expected[] = {0xe4, 0x9d, 0xd9, 0x90, 0x31, 0x10, 0x4b, 0xca,
                                    0x4b, 0x5c, 0x57, 0x5d, 0x96, 0x54, 0xb6, 0xab,
                                    0xf7, 0x08, 0xc4, 0x99, 0x22, 0x5c, 0x23, 0x62,
                                    0x1b, 0x31, 0xc4, 0x3b, 0x19, 0x2a, 0x06, 0x00};
  CHECK(std::ranges::equal(shown, expected));
}
