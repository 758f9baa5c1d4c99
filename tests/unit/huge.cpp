// SPDX-License-Identifier: BSL-1.0
//
// Messages of more than 2^31 units or bytes, up to 2^60: the arithmetic, without the memory.
#include "collectives/registry.hpp"
#include "lib/exec/executor.hpp"
#include "railpass/schedule/schedule.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

__extension__ using wide = __int128;

// Notes where messages lie and touches nothing.
class noting_rail {
 public:
  void reserve(std::size_t) {}
  post_result post_send(std::int32_t peer, std::int32_t, const std::byte* from, std::int64_t bytes,
                        rail_token) {
    sent[peer].push_back({from, bytes});
    return post_result::done;
  }
  post_result post_receive(std::int32_t peer, std::int32_t, std::byte* to, std::int64_t bytes,
                           rail_token) {
    received[peer].push_back({to, bytes});
    return post_result::done;
  }
  int poll(std::span<rail_token>) { return 0; }
  int pending() const { return 0; }
  void give_way() {}
  static constexpr int large_messages_at_once = 1;
  int error_code() const { return 0; }
  void abandon() {}

  struct message {
    const std::byte* memory;
    std::int64_t bytes;
  };
  std::map<int, std::vector<message>> sent, received;
};

}  // namespace

TEST_CASE("blocks and segments of huge messages, against 128-bit arithmetic") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 20000; ++trial) {
    const int bits = 28 + int(random() % 33);  // to 2^60
    const auto units = std::int64_t(random() >> (64 - bits)) + 1;
    const auto parts = std::int32_t(1 + random() % 5000);
    const message_size size{.units = units, .unit_bytes = 1};
    const auto k = std::int32_t(random() % std::uint64_t(parts));
    const auto expected = [&](std::int64_t block) {
      return wide(block) * (units / parts) + std::min<wide>(block, units % parts);
    };
    REQUIRE(wide(block_begin(units, parts, k)) == expected(k));
    REQUIRE(block_begin(units, parts, parts) == units);

    step s{.segmented = true, .blocks = {.parts = parts, .first = k, .count = 1}};
    const std::int64_t segment = std::int64_t{1} << (random() % 40);
    const extent whole = round_extent(s.blocks, 0, size);
    const std::int64_t segments = segments_per_round(s, segment, size);
    const std::int64_t longest = units / parts + (units % parts ? 1 : 0);
    REQUIRE(wide(segments) == std::max<wide>(1, (wide(longest) + segment - 1) / segment));
    // Its first, last and any other segment.
    for (const std::int64_t i :
         {std::int64_t{0}, segments - 1, std::int64_t(random() % std::uint64_t(segments))}) {
      const extent e = instance_extent(s, 0, i, segment, size);
      REQUIRE(wide(e.begin) == std::min<wide>(whole.end, wide(whole.begin) + wide(i) * segment));
      REQUIRE(wide(e.end) == std::min<wide>(whole.end, wide(e.begin) + segment));
    }
    REQUIRE(instance_extent(s, 0, segments - 1, segment, size).end == whole.end);
  }
}

TEST_CASE("blocks of given lengths: no range is longer than the message") {
  const std::int64_t all = std::int64_t{1} << 60;
  // One rank has nearly everything.
  const std::array<extent, 4> blocks{{{0, 1}, {1, all - 2}, {all - 2, all - 1}, {all - 1, all}}};
  const message_size size{.units = all, .unit_bytes = 1, .blocks = blocks};
  CHECK(longest_range(1, 4, size) == all - 3);
  for (const std::int32_t count : {2, 3, 4}) CHECK(longest_range(count, 4, size) == all);
  CHECK(blocks_extent(1, 3, 4, size) == extent{1, all});
}

TEST_CASE("the executor posts huge messages where they belong") {
  constexpr int p = 8;
  const std::int64_t bytes = (std::int64_t{1} << 40) + 12345;
  // Only the address is used.
  auto* const memory = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44);
  int algorithms = 0;
  for (const algorithm* a : all_algorithms) {
    if (a->op != collective::broadcast || a->is_native()) continue;
    if (!eligible(*a, {.num_ranks = p, .units = bytes})) continue;
    arm chosen = default_arm(*a);
    for (int i = 0; i < a->num_parameters(); ++i)
      if (a->parameter_list[std::size_t(i)].name == "segment_bytes")
        chosen.values[std::size_t(i)] = std::int64_t{3} << 30;  // some hundred segments
    INFO(name_of(chosen));
    std::map<std::pair<int, int>, std::vector<noting_rail::message>> sends, receives;
    for (int rank = 0; rank < p; ++rank) {
      const schedule s = a->build({.rank = rank, .num_ranks = p}, chosen.values);
      const binding b{.input = memory, .output = memory, .size = {.units = bytes}};
      if (executor<noting_rail>::scratch_bytes(s, b) > 0) continue;
      noting_rail rail;
      executor<noting_rail> exec(rail);
      REQUIRE(exec.run(s, b) == 0);
      std::vector<extent> arrived;
      for (const auto& [peer, messages] : rail.received) {
        for (const auto& m : messages)
          arrived.push_back({m.memory - memory, m.memory - memory + m.bytes});
        receives[{peer, rank}] = messages;
      }
      for (const auto& [peer, messages] : rail.sent) sends[{rank, peer}] = messages;
      // All that came covers the message.
      std::sort(arrived.begin(), arrived.end(),
                [](const extent& x, const extent& y) { return x.begin < y.begin; });
      std::int64_t end = 0;
      for (const extent& e : arrived) {
        REQUIRE(e.begin <= end);
        REQUIRE(e.end <= bytes);
        end = std::max(end, e.end);
      }
      if (rank != 0) REQUIRE(end == bytes);
      ++algorithms;
    }
    for (const auto& [pair, messages] : sends) {
      REQUIRE(receives[pair].size() == messages.size());
      for (std::size_t i = 0; i < messages.size(); ++i) {
        REQUIRE(receives[pair][i].memory == messages[i].memory);
        REQUIRE(receives[pair][i].bytes == messages[i].bytes);
      }
    }
  }
  CHECK(algorithms >= 10 * p);
}

TEST_CASE("scratch memory that no number of bytes can say is the largest integer") {
  const algorithm& ring = *find_algorithm(collective::all_reduce, "ring");
  const schedule s = ring.build({.rank = 1, .num_ranks = 2}, default_arm(ring).values);
  binding b{.size = {.units = std::int64_t{1} << 40, .unit_bytes = std::int64_t{1} << 30}};
  CHECK(executor<noting_rail>::scratch_bytes(s, b) == std::numeric_limits<std::int64_t>::max());
  b.size.units = 1 << 20;
  CHECK(executor<noting_rail>::scratch_bytes(s, b) < std::numeric_limits<std::int64_t>::max());
}
