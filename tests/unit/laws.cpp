// SPDX-License-Identifier: BSL-1.0
//
// The laws of results: no right result breaks them, and every planted fault does.
#include "lib/buffers/laws.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

using bytes = std::vector<std::byte>;
using blocks = std::vector<bytes>;

// A call of all ranks: what each rank puts in and gets out, block by block.
struct whole_call {
  promise what;
  std::size_t width = 0;
  int root = 0;
  std::vector<blocks> sent{}, received{};
  std::vector<std::uint64_t> first_element{};

  int num_ranks() const { return int(sent.size()); }
};

std::vector<std::span<const std::byte>> views(const blocks& all) {
  return {all.begin(), all.end()};
}

law_terms terms_of(const whole_call& w) {
  law_terms all;
  for (int r = 0; r < w.num_ranks(); ++r) {
    const lawful_call c{.what = w.what,
                        .rank = r,
                        .num_ranks = w.num_ranks(),
                        .root = w.root,
                        .width = w.width,
                        .first_element = w.first_element[std::size_t(r)]};
    law_terms own;
    add_input(own, c, views(w.sent[std::size_t(r)]));
    subtract_result(own, c, views(w.received[std::size_t(r)]));
    all.moved += own.moved;
    all.lengths += own.lengths;
    all.sums += own.sums;
  }
  return all;
}

bytes random_bytes(std::mt19937& random, std::size_t length) {
  bytes result(length);
  for (std::byte& b : result) b = std::byte(random());
  return result;
}

whole_call moved(promise what, int p, int root, std::mt19937& random, std::size_t most_bytes) {
  whole_call w{.what = what, .root = root};
  w.sent.resize(std::size_t(p));
  w.received.resize(std::size_t(p));
  w.first_element.resize(std::size_t(p));
  const auto some = [&] { return random_bytes(random, random() % (most_bytes + 1)); };
  const auto at = [](std::vector<blocks>& of, int r) -> blocks& { return of[std::size_t(r)]; };
  if (what == promise::root_to_all) {
    at(w.sent, root) = {random_bytes(random, most_bytes)};
    for (blocks& r : w.received) r = at(w.sent, root);
  } else if (what == promise::root_to_blocks) {
    for (int i = 0; i < p; ++i) {
      at(w.sent, root).push_back(some());
      at(w.received, i) = {at(w.sent, root).back()};
    }
  } else if (what == promise::blocks_to_root || what == promise::blocks_to_all) {
    blocks all;
    for (int i = 0; i < p; ++i) {
      all.push_back(some());
      at(w.sent, i) = {all.back()};
    }
    for (int i = 0; i < p; ++i)
      if (what == promise::blocks_to_all || i == root) at(w.received, i) = all;
  } else {
    for (int i = 0; i < p; ++i)
      for (int j = 0; j < p; ++j) {
        at(w.sent, i).push_back(some());
        at(w.received, j).push_back(at(w.sent, i).back());
      }
  }
  return w;
}

template <class T>
bytes as_bytes(const std::vector<T>& values) {
  bytes result(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(result.data(), values.data(), result.size());
  return result;
}

template <class T>
whole_call added(promise what, int p, int root, std::mt19937& random, std::size_t count) {
  whole_call w{.what = what, .width = sizeof(T), .root = root};
  w.first_element.resize(std::size_t(p));
  w.received.resize(std::size_t(p));
  std::vector<T> sum(count), before;
  for (int r = 0; r < p; ++r) {
    std::vector<T> own(count);
    for (T& x : own) x = T(std::uint64_t(random()) << 32 | random());
    before = sum;
    for (std::size_t i = 0; i < count; ++i) sum[i] = T(sum[i] + own[i]);
    w.sent.push_back({as_bytes(own)});
    if (what == promise::prefix) w.received[std::size_t(r)] = {as_bytes(sum)};
    if (what == promise::prefix_before && r > 0) w.received[std::size_t(r)] = {as_bytes(before)};
  }
  if (what == promise::reduce_to_root) w.received[std::size_t(root)] = {as_bytes(sum)};
  if (what == promise::reduce_to_all)
    for (blocks& r : w.received) r = {as_bytes(sum)};
  if (what == promise::reduce_to_blocks) {
    std::size_t first = 0;
    for (int r = 0; r < p; ++r) {
      const std::size_t end = r + 1 == p ? count : first + random() % (count - first + 1);
      w.first_element[std::size_t(r)] = first;
      w.received[std::size_t(r)] = {as_bytes(
          std::vector<T>(sum.begin() + std::ptrdiff_t(first), sum.begin() + std::ptrdiff_t(end)))};
      first = end;
    }
  }
  return w;
}

// Plants every fault of a single byte, every exchange of two received blocks of one rank, and every
// result that is the input of some rank; each must show.
void plant_faults(const whole_call& right) {
  REQUIRE(terms_of(right).hold(right.width));
  REQUIRE(terms_of(right).lengths == 0);
  int missed = 0, planted = 0;
  const auto look = [&](const whole_call& wrong) {
    ++planted;
    if (terms_of(wrong).hold(wrong.width)) ++missed;
  };
  for (std::size_t r = 0; r < right.received.size(); ++r)
    for (std::size_t b = 0; b < right.received[r].size(); ++b) {
      whole_call wrong = right;
      bytes& there = wrong.received[r][b];
      for (std::byte& x : there)
        for (const int change : {1, 0x80, 0xff}) {
          const std::byte was = std::exchange(x, x ^ std::byte(change));
          look(wrong);
          x = was;
        }
      for (std::size_t k = 0; k < right.received[r].size(); ++k)
        if (k != b && right.received[r][k] != right.received[r][b]) {
          wrong = right;
          std::swap(wrong.received[r][k], wrong.received[r][b]);
          look(wrong);
        }
      if (!right.received[r][b].empty()) {
        wrong = right;
        std::ranges::rotate(wrong.received[r][b], wrong.received[r][b].begin() + 1);
        if (wrong.received[r][b] != right.received[r][b]) look(wrong);
        std::ranges::fill(wrong.received[r][b], std::byte{});  // it never arrived
        if (wrong.received[r][b] != right.received[r][b]) look(wrong);
      }
      for (const blocks& other : right.sent)
        for (const bytes& source : other)
          if (source.size() == right.received[r][b].size() && source != right.received[r][b]) {
            wrong = right;
            wrong.received[r][b] = source;
            look(wrong);
          }
    }
  CAPTURE(int(right.what), right.width, right.num_ranks(), planted);
  CHECK(missed == 0);
}

}  // namespace

TEST_CASE("moved data: right results break no law, and every planted fault does") {
  const auto seed = test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  for (const promise what : {promise::root_to_all, promise::root_to_blocks, promise::blocks_to_root,
                             promise::blocks_to_all, promise::blocks_to_blocks})
    for (const int p : {2, 3, 5, 8})
      for (const std::size_t most : {1, 7, 8, 40})
        plant_faults(moved(what, p, int(random() % unsigned(p)), random, most));
}

TEMPLATE_TEST_CASE("sums of integers: right results break no law, and every planted fault does", "",
                   std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t) {
  const auto seed = test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  for (const promise what : {promise::reduce_to_all, promise::reduce_to_root,
                             promise::reduce_to_blocks, promise::prefix, promise::prefix_before})
    for (const int p : {2, 3, 5, 8})
      for (const std::size_t count : {1, 2, 9})
        if (sizeof(TestType) > 1 || count == 1)  // see the next test
          plant_faults(added<TestType>(what, p, int(random() % unsigned(p)), random, count));
}

TEST_CASE("sums of integers: a missing contribution escapes as rarely as the weights promise") {
  const auto seed = test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  int missed = 0;
  constexpr int rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    whole_call w = added<std::uint8_t>(promise::reduce_to_root, 3, 0, random, 4);
    for (std::size_t i = 0; i < 4; ++i) w.received[0][0][i] = w.sent[0][0][i];
    if (terms_of(w).hold(1)) ++missed;
  }
  CHECK(missed == 0);  // by chance 2^-32 per round, if no two bytes are alike
}

TEST_CASE("a change in all ranks' results alike shows") {
  std::mt19937 random(1);
  whole_call w = added<std::uint64_t>(promise::reduce_to_all, 4, 0, random, 3);
  for (blocks& r : w.received) r[0][7] ^= std::byte{0x80};  // the highest bit
  CHECK(!terms_of(w).hold(8));
}

TEST_CASE("ranks that mean blocks of different lengths are no wrong result") {
  std::mt19937 random(1);
  whole_call w = moved(promise::blocks_to_blocks, 3, 0, random, 8);
  w.received[1][2].push_back({});
  CHECK(terms_of(w).lengths != 0);
  CHECK(terms_of(moved(promise::blocks_to_blocks, 3, 0, random, 8)).lengths == 0);
}

TEST_CASE("a root in place passes no block to itself") {
  std::mt19937 random(1);
  const whole_call w = moved(promise::root_to_blocks, 4, 2, random, 8);
  law_terms all;
  for (int r = 0; r < 4; ++r) {
    const lawful_call c{
        .what = w.what, .rank = r, .num_ranks = 4, .root = 2, .own_block_stays = r == 2};
    add_input(all, c, views(w.sent[std::size_t(r)]));
    if (r != 2) subtract_result(all, c, views(w.received[std::size_t(r)]));
  }
  CHECK(all.hold(0));
}

TEST_CASE("hashes differ for every position, length and byte") {
  std::vector<std::uint64_t> seen;
  for (std::size_t length = 0; length < 40; ++length) {
    bytes b(length);
    seen.push_back(positioned_hash(b));
    for (std::byte& x : b)
      for (int value = 1; value < 256; value += 51) {
        x = std::byte(value);
        seen.push_back(positioned_hash(b));
        x = {};
      }
  }
  std::ranges::sort(seen);
  CHECK(std::ranges::adjacent_find(seen) == seen.end());
}
