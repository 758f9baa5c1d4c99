// SPDX-License-Identifier: BSL-1.0
#include "railpass/schedule/schedule.hpp"

#include "railpass/base/error.hpp"
#include "railpass/schedule/builder.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <random>
#include <set>

using namespace railpass;

namespace {

// The definition of blocks, by dealing out units one after the other.
std::vector<std::int64_t> dealt_block_sizes(std::int64_t units, std::int64_t parts) {
  std::vector<std::int64_t> sizes(std::size_t(parts), 0);
  for (std::int64_t u = 0; u < units; ++u) ++sizes[std::size_t(u % parts)];
  return sizes;
}

}  // namespace

TEST_CASE("blocks are what dealing out the units one by one gives, in adjacent ranges") {
  for (std::int64_t units = 0; units <= 40; ++units)
    for (std::int64_t parts = 1; parts <= 12; ++parts) {
      CAPTURE(units, parts);
      const auto sizes = dealt_block_sizes(units, parts);
      std::int64_t begin = 0;
      for (std::int64_t k = 0; k < parts; ++k) {
        REQUIRE(block_begin(units, parts, k) == begin);
        begin += sizes[std::size_t(k)];
      }
      REQUIRE(block_begin(units, parts, parts) == units);
    }
}

TEST_CASE("the segments of a round are its units, each once and in order") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int trial = 0; trial < 5000; ++trial) {
    step s;
    s.segmented = pick(0, 3) > 0;
    s.blocks.parts = pick(1, 9);
    s.blocks.count = pick(1, s.blocks.parts);
    const int last_first = s.blocks.parts - s.blocks.count;
    s.blocks.first = pick(0, last_first);
    // A stride is only used where no round wraps around the end: with single blocks.
    s.blocks.stride = s.blocks.count == 1 ? pick(-3, 3) : 0;
    s.rounds = pick(1, 7);
    const std::int64_t units = pick(0, 60), segment_units = pick(1, 8);
    CAPTURE(trial, s.segmented, s.blocks.parts, s.blocks.count, s.blocks.first, s.blocks.stride,
            units, segment_units);

    const auto sizes = dealt_block_sizes(units, s.blocks.parts);
    const std::int64_t segments = segments_per_round(s, segment_units, {units, 1});
    for (std::int32_t round = 0; round < s.rounds; ++round) {
      int first = s.blocks.first + round * s.blocks.stride;
      while (first < 0) first += s.blocks.parts;
      while (first >= s.blocks.parts) first -= s.blocks.parts;
      std::int64_t begin = 0, length = 0;
      for (int k = 0; k < first; ++k) begin += sizes[std::size_t(k)];
      for (int k = 0; k < s.blocks.count; ++k) length += sizes[std::size_t(first + k)];

      REQUIRE(round_extent(s.blocks, round, {units, 1}) == extent{begin, begin + length});
      std::int64_t at = begin;
      for (std::int64_t segment = 0; segment < segments; ++segment) {
        const extent e = instance_extent(s, round, segment, segment_units, {units, 1});
        REQUIRE(e.begin == at);
        REQUIRE(e.size() >= 0);
        if (s.segmented) REQUIRE(e.size() <= segment_units);
        // Only the last segments may be short.
        if (s.segmented && e.size() < segment_units) REQUIRE(e.end == begin + length);
        at = e.end;
      }
      REQUIRE(at == begin + length);
    }
  }
}

TEST_CASE("an instance waits for as many instances as its definition says") {
  for (std::int32_t rounds = 1; rounds <= 4; ++rounds)
    for (std::int32_t other_rounds = 1; other_rounds <= 4; ++other_rounds)
      for (std::int64_t segments = 1; segments <= 3; ++segments)
        for (std::int32_t lag = -2; lag <= 3; ++lag)
          for (std::int32_t round = 0; round < rounds; ++round)
            for (std::int64_t segment = 0; segment < segments; ++segment) {
              CAPTURE(rounds, other_rounds, segments, lag, round, segment);
              // All instances of the other step, in their order; the last one waited for.
              std::int64_t number = 0, awaited = 0;
              for (std::int32_t r = 0; r < other_rounds; ++r)
                for (std::int64_t k = 0; k < segments; ++k) {
                  ++number;
                  const bool beyond = lag >= 0 && round - lag >= other_rounds;
                  if (lag < 0 || beyond || (r == round - lag && k == segment)) awaited = number;
                }
              REQUIRE(instances_awaited({.step = 0, .lag = lag}, round, segment, segments,
                                        other_rounds, other_rounds * segments) == awaited);
            }
}

TEST_CASE("segments are whole units, at least one") {
  REQUIRE(message_size{100, 8}.segment_units(0) == 100);
  REQUIRE(message_size{0, 8}.segment_units(0) == 1);
  REQUIRE(message_size{100, 8}.segment_units(64) == 8);
  REQUIRE(message_size{100, 8}.segment_units(71) == 8);
  REQUIRE(message_size{100, 8}.segment_units(3) == 1);
}

TEST_CASE("for every root virtual ranks are a renaming of the physical ones") {
  for (std::int32_t p = 1; p <= 64; ++p)
    for (std::int32_t root = 0; root < p; ++root) {
      std::set<std::int32_t> seen;
      for (std::int32_t v = 0; v < p; ++v) seen.insert(physical_rank(v, root, p));
      CAPTURE(p, root);
      REQUIRE(physical_rank(0, root, p) == root);
      REQUIRE(seen.size() == std::size_t(p));
      REQUIRE(*seen.begin() == 0);
      REQUIRE(*seen.rbegin() == p - 1);
    }
}

TEST_CASE("the builder orders the messages of a pair, and lets neighbouring sends take turns") {
  builder b({.rank = 0, .num_ranks = 4});
  const step_id first = b.send(buffer::output, {}, 1);
  const step_id elsewhere = b.send(buffer::output, {}, 2);
  const step_id incoming = b.receive(buffer::scratch0, {}, 1);
  const step_id loop_step =
      b.send(buffer::output, {}, 1, {whole(incoming)}, {.rounds = 3, .peer_stride = 1});
  const schedule s = b.finish();

  const auto waits_of = [&](step_id id) {
    std::set<std::pair<std::int32_t, std::int32_t>> waits;
    for (const dependency& d : s.dependencies_of(s.steps[std::size_t(id)]))
      waits.emplace(d.step, d.lag);
    return waits;
  };
  REQUIRE(waits_of(elsewhere) ==
          std::set<std::pair<std::int32_t, std::int32_t>>{{first, dependency::in_turn}});
  REQUIRE(waits_of(incoming).empty());
  REQUIRE(waits_of(loop_step) ==
          std::set<std::pair<std::int32_t, std::int32_t>>{{incoming, dependency::all},
                                                          {first, dependency::posted},
                                                          {elsewhere, dependency::posted}});
  const auto told_by = [&](step_id id) {
    const auto told = s.successors_of(s.steps[std::size_t(id)]);
    return std::vector<std::int32_t>(told.begin(), told.end());
  };
  REQUIRE(told_by(first) == std::vector<std::int32_t>{elsewhere, loop_step});
  REQUIRE(told_by(elsewhere) == std::vector<std::int32_t>{loop_step});
  REQUIRE(told_by(incoming) == std::vector<std::int32_t>{loop_step});
  REQUIRE(s.use_of(buffer::scratch0).last > 0);
  REQUIRE(s.use_of(buffer::scratch1).last == 0);
}

TEST_CASE("the builder takes absent steps and empty loops, and refuses to wait for later steps") {
  builder b({.rank = 0, .num_ranks = 4});
  REQUIRE(b.send(buffer::output, {}, 1, {}, {.rounds = 0}) == no_step);
  const step_id only = b.receive(buffer::output, {}, 1, {whole(no_step), each(no_step)});
  REQUIRE(only == 0);
  REQUIRE_THROWS_AS(b.send(buffer::output, {}, 1, {whole(only + 1)}), error);
  const schedule s = b.finish();
  REQUIRE(s.dependencies.empty());
}

TEST_CASE("what the builder works out of a loop is what its rounds say one by one") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  const auto below = [&](std::int32_t n) { return std::int32_t(random() % std::uint32_t(n)); };
  for (int trial = 0; trial < 2000; ++trial) {
    CAPTURE(trial);
    const std::int32_t p = 2 + below(12);
    builder b({.rank = 0, .num_ranks = p});
    buffer_use used;
    std::vector<step_id> latest[2] = {std::vector(std::size_t(p), no_step),
                                      std::vector(std::size_t(p), no_step)};
    std::vector<std::set<step_id>> posted_before;
    const std::int32_t parts = 1 + below(12);
    for (std::int32_t n = 1 + below(6); n > 0; --n) {
      // Half of the loops go to neighbours, as most do in algorithms.
      const bool near = random() % 2 == 0;
      const loop l{.rounds = 1 + below(2 * p),
                   .peer_stride = near ? below(3) - 1 : below(2 * p) - p};
      block_range blocks{.parts = parts,
                         .first = below(parts),
                         .stride = near ? below(3) - 1 : below(2 * parts) - parts};
      if (blocks.stride == 0) blocks.count = 1 + below(parts - blocks.first);
      const std::int32_t peer = below(p);
      const bool sends = random() % 2 == 0;
      const step_id id = sends ? b.send(buffer::output, blocks, peer, {}, l)
                               : b.receive(buffer::output, blocks, peer, {}, l);
      std::set<step_id>& before = posted_before.emplace_back();
      for (std::int32_t r = 0; r < l.rounds; ++r) {
        step_id& last = latest[sends ? 0 : 1][std::size_t(wrap(peer + r * l.peer_stride, p))];
        if (last != no_step && last != id) before.insert(last);
        last = id;
        const std::int32_t first = wrap(blocks.first + r * blocks.stride, parts);
        used.include({parts, first, first + blocks.count});
      }
    }
    const schedule s = b.finish();
    REQUIRE(s.use_of(buffer::output) == used);
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      std::set<step_id> before;
      for (const dependency& d : s.dependencies_of(s.steps[i]))
        if (d.lag == dependency::posted) before.insert(d.step);
      REQUIRE(before == posted_before[i]);
    }
  }
}
