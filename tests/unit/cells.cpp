// SPDX-License-Identifier: BSL-1.0
//
// Schedules in shared memory: the use of cells over several calls, in all interleavings and at
// random, and the executor itself, run by threads that share its memory, also in phases.
#include "collectives/verify.hpp"
#include "lib/exec/cell_executor.hpp"
#include "lib/exec/executor.hpp"
#include "lib/exec/phases.hpp"
#include "lib/exec/schedule_cache.hpp"
#include "railpass/schedule/checking/handovers.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace railpass;
using namespace railpass::internal;

namespace {

std::vector<arm> shared_arms() {
  std::vector<arm> arms;
  for (const algorithm* a : all_algorithms) {
    if (!a->needs.shared_memory || a->needs.max_nodes > 0) continue;
    arms.push_back(default_arm(*a));
    if (a->num_parameters() == 0) continue;
    arms.push_back(default_arm(*a));
    // A tree of 4 ranks that is not flat; for single copies, givers that write.
    arms.back().values[0] = a->parameter_list[0].values[1];
  }
  return arms;
}

// Two caches for arms that know caches; otherwise none.
std::vector<std::int32_t> caches_for(const arm& a, std::int32_t p) {
  if (!a.base->needs.several_caches) return {};
  return {0, p / 2, p};
}

// Whether the arm cuts a message without blocks of ranks into as many blocks as ranks.
bool cuts_in_blocks(const arm& a, std::int64_t p) {
  const std::int32_t ranks = std::int32_t(p);
  return std::ranges::any_of(a.base->build({.rank = 0, .num_ranks = ranks}, a.values).steps,
                             [&](const step& s) { return s.blocks.parts == ranks; });
}

// A message of `segments` segments; blocks are equal, or the last one is shorter.
message_size size_of_segments(const arm& a, std::int64_t p, std::int64_t segments) {
  const promise what = describe(a.base->op).what;
  if (what == promise::all_arrive) return {p, 1};
  const std::int64_t unit_bytes = 2048, most = cell_bytes / unit_bytes;
  const bool in_blocks = traits_of(a.base->op).blocks || cuts_in_blocks(a, p);
  return {(segments * most - 1) * (in_blocks ? p : 1), unit_bytes};
}

struct prepared_call {
  std::vector<schedule> schedules;
  message_size size;
  std::int32_t root = 0;
  call_in_row in_row() const { return {schedules, size, root}; }
};
prepared_call prepare(const arm& a, std::int32_t p, std::int64_t segments, std::int32_t root) {
  return {build_all(a, p, true, 0, caches_for(a, p)), size_of_segments(a, p, segments),
          traits_of(a.base->op).rooted ? root : 0};
}

std::vector<call_in_row> in_row(const std::vector<prepared_call>& calls) {
  std::vector<call_in_row> result;
  for (const prepared_call& c : calls) result.push_back(c.in_row());
  return result;
}

std::uint64_t most_places(const std::vector<prepared_call>& calls) {
  std::int32_t most = 0;
  for (const prepared_call& c : calls) most = std::max(most, c.schedules[0].places);
  return std::uint64_t(most);
}

}  // namespace

TEST_CASE("three calls in a row are right in all interleavings of up to 4 ranks") {
  std::size_t states = 0;
  for (std::int32_t p = 2; p <= (test::sanitized ? 3 : 4); ++p)
    for (const arm& a : shared_arms()) {
      // Root and size change from call to call. With 4 ranks and long messages there are too many
      // states.
      const std::int64_t long_one = p < 4 ? 2 : 1;
      const std::vector<prepared_call> calls{prepare(a, p, 1, 0), prepare(a, p, long_one, p - 1),
                                             prepare(a, p, 1, p / 2)};
      for (const std::uint64_t more : {0, 1}) {
        CAPTURE(p, name_of(a.base->op), name_of(a), more);
        cell_protocol protocol(most_places(calls) + more);
        REQUIRE(protocol.set(in_row(calls)) == "");
        const std::string wrong = protocol.explore(40'000'000);
        if (wrong != "there are too many states") REQUIRE(wrong == "");
        states += protocol.num_states();
      }
    }
  REQUIRE(states > 10'000);
}

TEST_CASE(
    "collectives that follow one another are right in random interleavings of up to 8 ranks") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  const std::vector<arm> arms = shared_arms();
  for (int repetition = 0; repetition < (test::sanitized ? 20 : 200); ++repetition) {
    const auto p = std::int32_t(2 + random() % 7);
    std::vector<prepared_call> calls;
    for (int k = 0; k < 6; ++k)
      calls.push_back(prepare(arms[random() % arms.size()], p, 1 + std::int64_t(random() % 4),
                              std::int32_t(random() % std::uint32_t(p))));
    cell_protocol protocol(most_places(calls) + random() % 3);
    REQUIRE(protocol.set(in_row(calls)) == "");
    for (int k = 0; k < 5; ++k) REQUIRE(protocol.play(random) == "");
  }
}

TEST_CASE("as many ranks as an algorithm is for have places in the rings") {
  for (const arm& a : shared_arms()) {
    CAPTURE(name_of(a.base->op), name_of(a));
    const std::int32_t most = std::min(a.base->needs.max_ranks, 1000);
    CHECK(cell_executor::fits(a.base->build({.rank = 0, .num_ranks = most}, a.values)));
  }
}

TEST_CASE("wrong uses of cells are found out") {
  // In collectives where all wait for all, no cell could be reused too early.
  const arm flat = parse_arm(collective::all_reduce, "shared_flat");
  const arm to_all = parse_arm(collective::broadcast, "shared_flat");
  const std::vector<prepared_call> calls{prepare(to_all, 3, 2, 0), prepare(to_all, 3, 1, 2),
                                         prepare(to_all, 3, 2, 0)};
  const auto verdict = [&](std::uint64_t cells, cell_protocol::rule rule) {
    cell_protocol protocol(cells, rule);
    return protocol.set(in_row(calls));
  };
  CHECK(verdict(2, acknowledged_before) == "");
  // A cell is used again one number too early, or without any check.
  CHECK_THAT(
      verdict(2, [](std::uint64_t n, std::uint64_t cells) { return n < cells ? 0 : n - cells; }),
      ContainsSubstring("without having heard"));
  CHECK_THAT(verdict(2, [](std::uint64_t, std::uint64_t) { return std::uint64_t{0}; }),
             ContainsSubstring("without having heard") || ContainsSubstring("has overwritten"));
  // A cell that is never free.
  CHECK_THAT(verdict(2, [](std::uint64_t n, std::uint64_t) { return n + 1; }),
             ContainsSubstring("wait for ever"));
  SECTION("fewer cells than places") {
    const arm direct = parse_arm(collective::all_to_all, "shared_flat");
    const std::vector<prepared_call> one{prepare(direct, 4, 1, 0)};
    cell_protocol protocol(2);
    CHECK_THAT(protocol.set(in_row(one)), ContainsSubstring("wait for ever"));
  }
  SECTION("all interleavings show it, too") {
    const auto never_asks = [](std::uint64_t, std::uint64_t) { return std::uint64_t{0}; };
    cell_protocol protocol(2, never_asks);
    protocol.set(in_row(calls));
    CHECK_THAT(protocol.explore(),
               ContainsSubstring("has overwritten") || ContainsSubstring("reads number"));
  }
  SECTION("a schedule that looks where nobody publishes") {
    std::vector<prepared_call> one{prepare(flat, 3, 1, 0)};
    one[0].schedules[1].steps[0].kind = step_kind::combine;
    cell_protocol protocol(4);
    CHECK_THAT(protocol.set(in_row(one)), ContainsSubstring("wait for ever"));
  }
  SECTION("steps that cannot run one after the other") {
    std::vector<prepared_call> one{prepare(flat, 3, 2, 0)};
    for (schedule& s : one[0].schedules)
      for (dependency& d : s.dependencies) d.lag = dependency::all;
    cell_protocol protocol(4);
    CHECK_THAT(protocol.set(in_row(one)), ContainsSubstring("runs before step"));
  }
}

TEST_CASE("a call that ends while a peer may be in opened memory is found out") {
  for (const char* name : {"single_copy", "single_copy+giver_writes=1"}) {
    const arm a = parse_arm(collective::scatter, name);
    const std::vector<prepared_call> calls{prepare(a, 3, 1, 0), prepare(a, 3, 1, 2)};
    CAPTURE(name);
    CHECK(cell_protocol(3).set(in_row(calls)) == "");
    CHECK_THAT(cell_protocol(3, acknowledged_before, 3).set(in_row(calls)),
               ContainsSubstring("ends a call without having heard"));
  }
}

TEST_CASE("opened memory is a rank's own again once the peer has shown that it is done with it") {
  // In place, rank 0 reads the sum from where rank 1 has read its input, perhaps repeatedly.
  for (const bool again : {false, true}) {
    std::vector<schedule> all;
    for (const std::int32_t rank : {0, 1}) {
      builder b({.rank = rank, .num_ranks = 2}, 0, 2);
      if (rank == 0) {
        b.offer(buffer::input, {}, 1, 0);
        b.get(1, 1, buffer::output, {});
      } else {
        const step_id own = b.copy(buffer::input, buffer::output, {});
        const step_id got = b.get(0, 0, buffer::scratch0, {});
        const step_id sum =
            b.reduce(buffer::scratch0, buffer::output, {}, {whole(own), whole(got)});
        b.offer(buffer::output, {}, 0, 1, {whole(sum)});
        if (again) b.get(0, 0, buffer::scratch1, {});
      }
      all.push_back(b.finish());
    }
    for (const bool in_place : {false, true}) {
      CAPTURE(again, in_place);
      const std::string wrong =
          checker{}
              .check(all, {.what = promise::reduce_to_all, .in_place = in_place, .size = {9, 1}})
              .message;
      if (again && in_place)
        CHECK_THAT(wrong, ContainsSubstring("race"));
      else
        CHECK(wrong == "");
    }
  }
}

TEST_CASE("the checker rejects what single copies must not do") {
  const auto verdict = [&](const char* name, auto change) {
    const arm a = parse_arm(collective::all_to_all, name);
    std::vector<schedule> all = build_all(a, 3, true);
    change(all);
    return checker{}.check(all, {.what = promise::blocks_to_blocks, .size = {9, 1}}).message;
  };
  const auto nothing = [](auto&) {};
  // The steps: two that open memory, the copy of the own block, two single copies.
  for (const char* name : {"single_copy", "single_copy+giver_writes=1"}) {
    CAPTURE(name);
    CHECK(verdict(name, nothing) == "");
    CHECK_THAT(verdict(name, [](auto& all) { all[1].steps[1].place = all[1].steps[0].place; }),
               ContainsSubstring("shows something at the same place"));
    CHECK_THAT(verdict(name, [](auto& all) { all[1].steps[0].peer = 1; }),
               ContainsSubstring("is the rank itself"));
    // Memory opened to the wrong peer.
    CHECK_THAT(verdict(name, [](auto& all) { all[1].steps[0].peer = 0; }),
               ContainsSubstring("does not start"));
    CHECK_THAT(verdict(name, [](auto& all) { all[1].steps[3].place = 0; }),
               ContainsSubstring("does not start"));
    CHECK_THAT(verdict(name, [](auto& all) { all[1].steps[0].blocks.count = 2; }),
               ContainsSubstring("expected equal lengths") ||
                   ContainsSubstring("beyond the end of the message") || ContainsSubstring("race"));
  }
  CHECK_THAT(verdict("single_copy", [](auto& all) { all[1].steps[3].kind = step_kind::fetch; }),
             ContainsSubstring("does not start"));
  // Memory that a peer may be writing or reading until the end of the call.
  CHECK_THAT(verdict("single_copy+giver_writes=1",
                     [](auto& all) { all[1].steps[2].blocks = all[1].steps[0].blocks; }),
             ContainsSubstring("race"));
  CHECK_THAT(verdict("single_copy",
                     [](auto& all) {
                       // A rank offers memory into which it will fetch.
                       for (schedule& s : all) {
                         s.steps[0].from = s.steps[0].to = buffer::output;
                         s.steps[0].blocks = s.steps[3].blocks;
                       }
                     }),
             ContainsSubstring("race"));
}

TEST_CASE("the checker rejects what steps in shared memory must not do") {
  const arm flat = parse_arm(collective::all_reduce, "shared_flat");
  const auto verdict = [&](auto change) {
    std::vector<schedule> all = build_all(flat, 3, true);
    change(all);
    return checker{}
        .check(all, {.what = promise::reduce_to_all, .in_place = true, .size = {9, 2048}})
        .message;
  };
  CHECK(verdict([](auto&) {}) == "");
  CHECK_THAT(verdict([](auto& all) { all[1].steps[1].place = 1; }),
             ContainsSubstring("the place is 1 of 1"));
  CHECK_THAT(verdict([](auto& all) { all[1].steps[1].peer = 3; }),
             ContainsSubstring("no such rank"));
  CHECK_THAT(verdict([](auto& all) { all[1].steps[0].rounds = 2; }),
             ContainsSubstring("expected 1"));
  CHECK_THAT(verdict([](auto& all) { all[2].places = 2; }), ContainsSubstring("places"));
  CHECK_THAT(
      verdict([](auto& all) { all[1].steps[0].segmented = false; }),
      ContainsSubstring("at once, a slot of shared memory holds") || ContainsSubstring("segments"));
  CHECK_THAT(verdict([](auto& all) { all[1].steps[2].kind = step_kind::fetch; }),
             ContainsSubstring("expected the contributions"));
  CHECK_THAT(verdict([](auto& all) { all[1].steps[2].peer = 0; }),
             ContainsSubstring("expected the contributions"));
  CHECK_THAT(verdict([](auto& all) { all[1].steps[1].num_dependencies = 0; }),
             ContainsSubstring("race"));
  CHECK_THAT(verdict([](auto& all) { all[1].steps[0].kind = step_kind::combine; }),
             ContainsSubstring("writes the input"));
  CHECK_THAT(verdict([](auto& all) {
               all[1].steps[0].kind = step_kind::send;
               all[1].steps[0].peer = 0;
             }),
             ContainsSubstring("is a message of a schedule with shared memory"));
}

namespace {

constexpr std::uint64_t prime = 2147483647;

// x -> a x + b modulo a prime; composing such maps is associative and not commutative.
struct affine {
  std::uint32_t a = 1, b = 0;
  friend bool operator==(const affine&, const affine&) = default;
};
affine compose(affine left, affine right) {
  return {std::uint32_t(std::uint64_t{left.a} * right.a % prime),
          std::uint32_t((std::uint64_t{left.a} * right.b + left.b) % prime)};
}
affine add(affine left, affine right) { return {left.a + right.a, left.b + right.b}; }
using operation = affine (*)(affine, affine);

// The same value between gaps, as in a type with holes.
struct with_gaps {
  std::uint32_t gap0 = 0xeeeeeeee;
  affine value;
  std::uint32_t gap1 = 0xdddddddd;
};
affine& value_of(affine& e) { return e; }
affine& value_of(with_gaps& e) { return e.value; }

// Scratch memory has no room for the gaps before the first value and behind the last.
template <class Element, operation Op>
int reduce_elements(void*, const std::byte* left, std::byte* right, std::int64_t units) {
  constexpr std::size_t at = std::is_same_v<Element, affine> ? 0 : offsetof(with_gaps, value);
  for (std::int64_t i = 0; i < units; ++i) {
    affine l, r;
    std::memcpy(&l, left + i * std::int64_t(sizeof(Element)) + at, sizeof l);
    std::memcpy(&r, right + i * std::int64_t(sizeof(Element)) + at, sizeof r);
    r = Op(l, r);
    std::memcpy(right + i * std::int64_t(sizeof(Element)) + at, &r, sizeof r);
  }
  return 0;
}
thread_local int packings = 0;
int pack_elements(void*, const std::byte* memory, std::int64_t units, std::byte* packed) {
  ++packings;
  for (std::int64_t i = 0; i < units; ++i)
    std::memcpy(packed + i * std::int64_t(sizeof(affine)),
                memory + i * std::int64_t(sizeof(with_gaps)) + offsetof(with_gaps, value),
                sizeof(affine));
  return 0;
}
int unpack_elements(void*, const std::byte* packed, std::int64_t units, std::byte* memory) {
  for (std::int64_t i = 0; i < units; ++i)
    std::memcpy(memory + i * std::int64_t(sizeof(with_gaps)) + offsetof(with_gaps, value),
                packed + i * std::int64_t(sizeof(affine)), sizeof(affine));
  return 0;
}

// One call, equal on all ranks: what the collective is to give follows from it.
struct planned_call {
  arm a;
  std::int64_t units = 0;  // of a block where there are blocks
  int root = 0;
  bool commutative = true, in_place = false, with_holes = false;
  std::uint32_t salt = 0;
};

affine contribution(const planned_call& c, int rank, std::int64_t unit) {
  return {1 + std::uint32_t((c.salt + std::uint32_t(rank) * 7919u + std::uint32_t(unit)) % 1000),
          std::uint32_t((c.salt * 31u + std::uint32_t(rank) * 17u + std::uint32_t(unit)) % 1000)};
}

// Runs the call on one rank by `run(schedule, binding)`, and compares. Physical ranks, as MPI has
// them. `nodes`: see shape; where regions are of nodes the root is rank 0.
template <class Element, class Run>
bool run_call_by(const Run& run, schedule_cache& cache, const planned_call& c, int rank, int p,
                 const std::vector<std::int32_t>& nodes = {}) {
  const promise_traits traits = traits_of(c.a.base->op);
  const promise what = describe(c.a.base->op).what;
  const bool in_order = traits.reduces && !c.commutative;
  const int first = traits.rooted && !in_order ? c.root : 0;
  const int v = wrap(rank - first, p);
  const auto plan = cache.find_or_build(*c.a.base, c.a.values,
                                        {.rank = v,
                                         .num_ranks = p,
                                         .commutative = c.commutative,
                                         .result_rank = traits.rooted && in_order ? c.root : 0,
                                         .nodes = nodes});
  const schedule& s = *plan;
  if (what == promise::all_arrive) {
    const auto n = static_cast<std::size_t>(p);
    std::vector<std::byte> in(n, std::byte{1}), out(n, std::byte{0});
    return run(s, {.input = in.data(), .output = out.data(), .size = {p, 1}}) == 0;
  }
  const std::int64_t all = c.units * (traits.blocks ? p : 1);
  const auto n = static_cast<std::size_t>(all);
  std::vector<Element> input(n), output(n);
  const affine untouched{0, 0};
  for (std::int64_t u = 0; u < all; ++u) {
    value_of(input[std::size_t(u)]) = contribution(c, rank, u);
    value_of(output[std::size_t(u)]) = untouched;
  }
  const bool aliased =
      what == promise::root_to_all ||
      (c.in_place && (traits.in_place == in_place_ranks::all ||
                      (traits.in_place == in_place_ranks::root && rank == c.root)));
  if (aliased) output = input;
  binding b{.input = reinterpret_cast<const std::byte*>(aliased ? output.data() : input.data()),
            .output = reinterpret_cast<std::byte*>(output.data()),
            .size = {all, sizeof(affine)},
            .root = first};
  if (traits.reduces)
    b.hooks.reduce =
        c.commutative ? reduce_elements<Element, add> : reduce_elements<Element, compose>;
  if (sizeof(Element) > sizeof(affine)) {
    b.hooks.pack = pack_elements;
    b.hooks.unpack = unpack_elements;
    b.layout = {sizeof(with_gaps), offsetof(with_gaps, value), sizeof(affine)};
  }
  if (run(s, b) != 0) return false;

  // Blocks are those of virtual ranks.
  const auto block_of = [&](std::int64_t u) { return int(u / c.units); };
  const auto folded = [&](int ranks, std::int64_t u) {
    affine sum = contribution(c, 0, u);
    for (int r = 1; r < ranks; ++r)
      sum = c.commutative ? add(sum, contribution(c, r, u)) : compose(sum, contribution(c, r, u));
    return sum;
  };
  for (std::int64_t u = 0; u < all; ++u) {
    const affine mine = value_of(output[std::size_t(u)]);
    affine expected = mine;
    switch (what) {
      case promise::root_to_all:
        expected = contribution(c, c.root, u);
        break;
      case promise::reduce_to_all:
        expected = folded(p, u);
        break;
      case promise::reduce_to_root:
        if (rank == c.root) expected = folded(p, u);
        break;
      case promise::reduce_to_blocks:
        if (block_of(u) == v) expected = folded(p, u);
        break;
      case promise::prefix:
        expected = folded(rank + 1, u);
        break;
      case promise::prefix_before:
        if (rank > 0) expected = folded(rank, u);
        break;
      case promise::blocks_to_root:
        if (v == 0) expected = contribution(c, physical_rank(block_of(u), c.root, p), u);
        break;
      case promise::root_to_blocks:
        if (block_of(u) == v) expected = contribution(c, c.root, u);
        break;
      case promise::blocks_to_all:
        expected = contribution(c, block_of(u), u);
        break;
      case promise::blocks_to_blocks:
        expected = contribution(c, block_of(u), rank * c.units + u % c.units);
        break;
      default:
        break;
    }
    if (!(mine == expected)) return false;
  }
  if constexpr (sizeof(Element) > sizeof(affine))
    for (const Element& e : output)
      if (e.gap0 != 0xeeeeeeee || e.gap1 != 0xdddddddd) return false;
  return true;
}

template <class Element>
bool run_call(cell_executor& exec, schedule_cache& cache, const planned_call& c, int rank, int p) {
  const auto run = [&](const schedule& s, const binding& b) { return exec.run(s, b); };
  return run_call_by<Element>(run, cache, c, rank, p, caches_for(c.a, p));
}

// @param wrong by rank: 1 + the number of the first call with a wrong result; 0: none
void check_right(const std::vector<std::atomic<int>>& wrong,
                 const std::vector<planned_call>& calls) {
  for (std::size_t r = 0; r < wrong.size(); ++r) {
    const int first = wrong[r];
    const planned_call& c = calls[std::size_t(std::max(first - 1, 0))];
    CAPTURE(wrong.size(), r, first, name_of(c.a.base->op), name_of(c.a), c.units, c.root,
            c.commutative, c.in_place, c.with_holes);
    CHECK(first == 0);
  }
}

struct freed {
  void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{4096}); }
};
std::unique_ptr<std::byte, freed> zeroed_regions(int p) {
  const auto bytes = std::size_t(cell_region::bytes) * std::size_t(p);
  std::unique_ptr<std::byte, freed> memory(
      static_cast<std::byte*>(::operator new (bytes, std::align_val_t{4096})));
  std::memset(memory.get(), 0, bytes);
  return memory;
}
// Regions of ranks [begin, end), which share memory.
cell_regions regions_of(std::byte* memory, int begin, int end) {
  cell_regions regions;
  for (int r = begin; r < end; ++r) {
    const cell_region region(memory + r * cell_region::bytes);
    region.set_process(::getpid());
    regions.add(r, region);
  }
  return regions;
}
cell_regions regions_of(std::byte* memory, int p) { return regions_of(memory, 0, p); }

}  // namespace

TEST_CASE("threads that share cells get what collectives promise, whatever follows what") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  const std::vector<arm> arms = shared_arms();
  for (const int p : {2, 3, 4, 8}) {
    const auto memory = zeroed_regions(p);
    std::vector<planned_call> calls;
    for (int k = 0; k < (test::sanitized ? 150 : 1000); ++k) {
      planned_call c{.a = arms[random() % arms.size()]};
      // Half of the calls repeat the call before, in place or not.
      const bool again = k > 0 && random() % 2 == 0;
      c.units = random() % 2 == 0 ? 1 + random() % 8 : 1 + random() % 3000;
      if (random() % 50 == 0) c.units = 40'000;  // wraps around the ring
      c.root = int(random() % std::uint32_t(p));
      c.commutative = random() % 2 == 0;
      if (again) c = calls.back();
      c.in_place = random() % 2 == 0;
      if (!again) c.with_holes = traits_of(c.a.base->op).reduces && random() % 3 == 0;
      c.salt = std::uint32_t(random());
      calls.push_back(c);
    }
    std::vector<std::atomic<int>> wrong(static_cast<std::size_t>(p));
    std::vector<std::thread> ranks;
    for (int r = 0; r < p; ++r)
      ranks.emplace_back([&, r] {
        const cell_regions regions = regions_of(memory.get(), p);
        cell_executor exec(regions, r, false);
        schedule_cache cache(2);
        for (std::size_t k = 0; k < calls.size(); ++k) {
          const bool right = calls[k].with_holes ? run_call<with_gaps>(exec, cache, calls[k], r, p)
                                                 : run_call<affine>(exec, cache, calls[k], r, p);
          if (!right && wrong[std::size_t(r)] == 0) wrong[std::size_t(r)] = int(k) + 1;
        }
      });
    for (std::thread& t : ranks) t.join();
    check_right(wrong, calls);
  }
}

namespace {

// Messages between threads, which arrive as soon as they are sent.
class thread_rail {
 public:
  struct mail {
    std::mutex mutex;
    std::map<std::array<int, 3>, std::deque<std::vector<std::byte>>> sent;  // from, to, tag
  };
  static constexpr int large_messages_at_once = 1;

  thread_rail(mail& all, int rank) : mail_(all), rank_(rank) {}
  void reserve(std::size_t) {}
  post_result post_send(std::int32_t peer, std::int32_t tag, const std::byte* from,
                        std::int64_t bytes, rail_token) {
    const std::lock_guard lock(mail_.mutex);
    mail_.sent[{rank_, peer, tag}].emplace_back(from, from + bytes);
    return post_result::done;
  }
  post_result post_receive(std::int32_t peer, std::int32_t tag, std::byte* to, std::int64_t bytes,
                           rail_token token) {
    waiting_.push_back({{peer, rank_, tag}, to, bytes, token});
    return post_result::pending;
  }
  int poll(std::span<rail_token> completed) {
    const std::lock_guard lock(mail_.mutex);
    std::size_t ended = 0;
    for (std::size_t i = 0; i < waiting_.size() && ended < completed.size();) {
      const awaited w = waiting_[i];
      auto& sent = mail_.sent[w.pair];
      if (sent.empty()) {
        ++i;
        continue;
      }
      if (std::int64_t(sent.front().size()) != w.bytes) return -1;
      std::ranges::copy(sent.front(), w.to);
      sent.pop_front();
      completed[ended++] = w.token;
      waiting_.erase(waiting_.begin() + std::ptrdiff_t(i));
    }
    return int(ended);
  }
  int pending() const { return int(waiting_.size()); }
  void give_way() { std::this_thread::yield(); }
  int error_code() const { return 1; }
  void abandon() { waiting_.clear(); }

 private:
  struct awaited {
    std::array<int, 3> pair;
    std::byte* to;
    std::int64_t bytes;
    rail_token token;
  };
  mail& mail_;
  int rank_;
  std::vector<awaited> waiting_;
};

}  // namespace

TEST_CASE("threads on several nodes get what collectives promise, phase by phase") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  // A node of one rank, and nodes of equally many ranks, which some arms need.
  for (const std::vector<std::int32_t>& nodes :
       {std::vector<std::int32_t>{0, 2, 3}, {0, 1, 5, 7}, {0, 3, 6}}) {
    const int p = nodes.back();
    const auto facts = verify_detail::facts_of(nodes, p);
    std::vector<arm> arms;
    for (const collective op : all_collectives)
      for (const arm& a : arms_of(op))
        if (a.base->needs.shared_memory && a.base->needs.max_nodes > 0 &&
            eligible(*a.base, {.num_ranks = p, .shared_memory = true, .nodes = facts}))
          arms.push_back(a);
    std::vector<planned_call> calls;
    for (int k = 0; k < (test::sanitized ? 100 : 600); ++k) {
      planned_call c{.a = arms[random() % arms.size()]};
      c.units = random() % 2 == 0 ? 1 + random() % 8 : 1 + random() % 3000;
      c.commutative = c.a.base->needs.commutative || random() % 2 == 0;
      if (k > 0 && random() % 2 == 0) c = calls.back();
      c.in_place = random() % 2 == 0;
      c.with_holes = traits_of(c.a.base->op).reduces && random() % 3 == 0;
      c.salt = std::uint32_t(random());
      calls.push_back(c);
    }
    const auto memory = zeroed_regions(p);
    thread_rail::mail mail;
    std::vector<std::atomic<int>> wrong(static_cast<std::size_t>(p));
    std::vector<std::thread> ranks;
    for (int r = 0; r < p; ++r)
      ranks.emplace_back([&, r] {
        const auto end = std::ranges::upper_bound(nodes, r);
        const bool alone = *end - *(end - 1) == 1;
        const cell_regions regions =
            alone ? cell_regions() : regions_of(memory.get(), *(end - 1), *end);
        cell_executor cells(regions, r, false);
        thread_rail rail(mail, r);
        executor<thread_rail> messages(rail, {}, 4);
        phases_executor phases;
        schedule_cache cache(2);
        const auto run = [&](const schedule& s, const binding& b) {
          return phases.run(s, b, messages, cells);
        };
        for (std::size_t k = 0; k < calls.size(); ++k) {
          const planned_call& c = calls[k];
          const bool right = c.with_holes ? run_call_by<with_gaps>(run, cache, c, r, p, nodes)
                                          : run_call_by<affine>(run, cache, c, r, p, nodes);
          if (!right && wrong[std::size_t(r)] == 0) wrong[std::size_t(r)] = int(k) + 1;
        }
      });
    for (std::thread& t : ranks) t.join();
    check_right(wrong, calls);
  }
}

TEST_CASE("whichever rank fails in a phase, those who wait in any other end when they hear of it") {
  const std::vector<std::int32_t> nodes{0, 2, 4};
  constexpr int p = 4, own_code = 7, heard_code = 9;
  const arm a = parse_arm(collective::all_reduce, "nodes_shared_recursive_doubling");
  // Only leaders reduce: first within their nodes, then across all nodes.
  for (const int failing : {0, 2}) {
    const auto memory = zeroed_regions(p);
    thread_rail::mail mail;
    std::atomic<bool> told{false};
    std::array<int, p> codes{};
    std::vector<std::thread> ranks;
    for (int r = 0; r < p; ++r)
      ranks.emplace_back([&, r] {
        const cell_regions regions = regions_of(memory.get(), r / 2 * 2, r / 2 * 2 + 2);
        cell_executor cells(regions, r, false);
        thread_rail rail(mail, r);
        executor<thread_rail> messages(rail, {}, 4);
        phases_executor phases;
        const schedule s =
            numbered(a.base->build({.rank = r, .num_ranks = p, .nodes = nodes}, a.values));
        std::vector<affine> in(100), out(in.size());
        binding b{.input = reinterpret_cast<const std::byte*>(in.data()),
                  .output = reinterpret_cast<std::byte*>(out.data()),
                  .size = {std::int64_t(in.size()), sizeof(affine)}};
        b.hooks.reduce = reduce_elements<affine, add>;
        if (r == failing)
          b.hooks.reduce = [](void*, const std::byte*, std::byte*, std::int64_t) {
            return own_code;
          };
        const wait_watch watch{.look =
                                   [](void* flag) {
                                     const bool failed = *static_cast<std::atomic<bool>*>(flag);
                                     return failed ? heard_code : 0;
                                   },
                               .user_data = &told};
        codes[std::size_t(r)] = phases.run(s, b, messages, cells, watch);
        if (r == failing) told = true;
      });
    for (std::thread& t : ranks) t.join();
    for (int r = 0; r < p; ++r) {
      CAPTURE(failing, r);
      CHECK(codes[std::size_t(r)] == (r == failing ? own_code : heard_code));
    }
  }
}

TEST_CASE("who waits in shared memory is asked to look around, and may be told to stop") {
  const auto memory = zeroed_regions(2);
  const cell_regions regions = regions_of(memory.get(), 2);
  cell_executor exec(regions, 1, true);
  const arm flat = parse_arm(collective::broadcast, "shared_flat");
  const schedule s = flat.base->build({.rank = 1, .num_ranks = 2}, flat.values);
  std::vector<std::byte> message(8);
  int looks = 0;
  const wait_watch watch{.look = [](void* user) { return ++*static_cast<int*>(user) < 3 ? 0 : 42; },
                         .user_data = &looks};
  CHECK(exec.run(s, {.output = message.data(), .size = {8, 1}}, watch) == 42);
  CHECK(looks == 3);
}

TEST_CASE("who waits for long says for whom") {
  const auto memory = zeroed_regions(2);
  const cell_regions regions = regions_of(memory.get(), 2);
  cell_executor exec(regions, 1, false);
  const arm flat = parse_arm(collective::broadcast, "shared_flat");
  const schedule s = flat.base->build({.rank = 1, .num_ranks = 2}, flat.values);
  std::vector<std::byte> message(8);
  std::int32_t awaited = -1;
  const wait_watch watch{
      .after_s = 1e-9,
      .report = [](void* user, std::span<const awaited_peer> peers,
                   double) { *static_cast<std::int32_t*>(user) = peers[0].rank; },
      .look = [](void* user) { return *static_cast<std::int32_t*>(user) < 0 ? 0 : 7; },
      .user_data = &awaited};
  CHECK(exec.run(s, {.output = message.data(), .size = {8, 1}}, watch) == 7);
  CHECK(awaited == 0);
}

TEST_CASE("what a rank gives to several others is packed once") {
  constexpr int p = 4;
  for (const char* name : {"single_copy", "single_copy+giver_writes=1"}) {
    CAPTURE(name);
    const auto memory = zeroed_regions(p);
    const planned_call c{
        .a = parse_arm(collective::all_reduce, name), .units = 40, .with_holes = true};
    std::array<int, p> packed{};
    std::array<std::atomic<bool>, p> right{};
    std::vector<std::thread> ranks;
    for (int r = 0; r < p; ++r)
      ranks.emplace_back([&, r] {
        const cell_regions regions = regions_of(memory.get(), p);
        cell_executor exec(regions, r, false);
        schedule_cache cache(2);
        right[std::size_t(r)] = run_call<with_gaps>(exec, cache, c, r, p);
        packed[std::size_t(r)] = packings;
      });
    for (std::thread& t : ranks) t.join();
    for (int r = 0; r < p; ++r) {
      CHECK(right[std::size_t(r)]);
      // A block for each other rank; the own block and its sum, where copied; the sum.
      CHECK(packed[std::size_t(r)] == p - 1 + 2 + 1);
    }
  }
}

TEST_CASE("regions are found by rank, whether ranks of a host follow one another or not") {
  const auto memory = zeroed_regions(4);
  const auto region_at = [&](int k) { return memory.get() + k * cell_region::bytes; };
  for (const std::array<int, 4>& ranks : {std::array{6, 7, 8, 9}, std::array{1, 4, 5, 90}}) {
    cell_regions regions;
    regions.reserve(4);
    for (int k = 0; k < 4; ++k) regions.add(ranks[std::size_t(k)], cell_region(region_at(k)));
    for (int rank = 0; rank < 100; ++rank) {
      const auto found = std::ranges::find(ranks, rank);
      CHECK(regions[rank].memory() ==
            (found == ranks.end() ? nullptr : region_at(int(found - ranks.begin()))));
    }
  }
  CHECK(cell_regions()[3].memory() == nullptr);
}

TEST_CASE("what the kernel does not copy is an error that names the process") {
  const auto memory = zeroed_regions(2);
  const cell_regions regions = regions_of(memory.get(), 2);
  struct {
    std::byte* address = nullptr;
    std::int64_t bytes = 8;
  } const nowhere;
  for (const bool writes : {false, true}) {
    // The root reads rank 1's offer at place 0, or rank 1 writes into the root's memory opened at
    // 1.
    const arm a =
        parse_arm(collective::gather, writes ? "single_copy+giver_writes=1" : "single_copy");
    const int rank = writes ? 1 : 0;
    const schedule s = a.base->build({.rank = rank, .num_ranks = 2}, a.values);
    const cell_region& theirs = regions[1 - rank];
    std::memcpy(theirs.content(cell_ring::opened, std::uint64_t(rank)), &nowhere, sizeof nowhere);
    theirs.show(cell_ring::opened, std::uint64_t(rank), {});
    cell_executor exec(regions, rank, true);
    std::vector<std::byte> in(16), out(16);
    CHECK_THROWS_WITH(exec.run(s, {.input = in.data(), .output = out.data(), .size = {16, 1}}),
                      ContainsSubstring(std::to_string(::getpid())) &&
                          ContainsSubstring(writes ? "writing 8 bytes" : "reading 8 bytes"));
  }
}

TEST_CASE(
    "opened memory is closed before its owner is gone, and handed over where the kernel refuses") {
  handovers all({});
  REQUIRE(all.explore() == "");
  CHECK(all.num_states() > 1000);
  const auto found = [](const handovers::rules& by) { return handovers(by).explore(); };
  CHECK_THAT(found({.looks_again = false}), ContainsSubstring("has left its call"));
  CHECK_THAT(found({.waits = false}), ContainsSubstring("has left its call"));
  CHECK_THAT(found({.names_owner = false}), ContainsSubstring("that is changing"));
  CHECK_THAT(found({.later_counts = false}), ContainsSubstring("that is changing"));
}

namespace {

// Forbids single copies for the calling thread, permanently. Returns false if filters are missing.
bool forbid_single_copies() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

TEST_CASE("what the kernel refuses to copy goes by way of shared memory, from some call on") {
  constexpr int p = 3;
  std::vector<planned_call> calls;
  for (const arm& a : shared_arms())
    if (std::string_view(a.base->name) == "single_copy")
      for (const std::int64_t units : {1, 700})  // of 8 bytes: no or several whole portions
        for (const bool with_holes : {false, true})
          calls.push_back({.a = a,
                           .units = units,
                           .root = int(calls.size() % p),
                           .with_holes = with_holes,
                           .salt = std::uint32_t(calls.size())});
  REQUIRE(calls.size() > 16);
  const auto memory = zeroed_regions(p);
  std::vector<std::atomic<int>> wrong(p);
  std::atomic<bool> has_filters = true;
  std::array<std::atomic<bool>, p> refused{};
  std::vector<std::thread> ranks;
  for (int r = 0; r < p; ++r)
    ranks.emplace_back([&, r] {
      const cell_regions regions = regions_of(memory.get(), p);
      cell_executor exec(regions, r, false);
      schedule_cache cache(2);
      for (std::size_t k = 0; k < calls.size(); ++k) {
        if (r > 0 && k == calls.size() / (r == 1 ? 4 : 2) && !forbid_single_copies())
          has_filters = false;
        const planned_call& c = calls[k];
        const bool right = c.with_holes ? run_call<with_gaps>(exec, cache, c, r, p)
                                        : run_call<affine>(exec, cache, c, r, p);
        if (!right && wrong[std::size_t(r)] == 0) wrong[std::size_t(r)] = int(k) + 1;
      }
      refused[std::size_t(r)] = exec.refuses_copies();
    });
  for (std::thread& t : ranks) t.join();
  check_right(wrong, calls);
  CHECK(!refused[0]);
  if (!has_filters) return;
  CHECK(refused[1]);
  CHECK(refused[2]);
}

TEST_CASE("a rank hands over nothing but what it has opened to the one who asks") {
  const auto memory = zeroed_regions(3);
  const cell_regions regions = regions_of(memory.get(), 3);
  const relay asks(regions, 1);
  std::vector<std::byte> in(24, std::byte{1}), out(24, std::byte{2});
  struct {
    const relay& by;
    int looks = 0;
  } watched{asks};
  const wait_watch watch{.look =
                             [](void* user) {
                               auto& mine = *static_cast<decltype(watched)*>(user);
                               return mine.by.is_answered() ? 7 : ++mine.looks < 5 ? 0 : 42;
                             },
                         .user_data = &watched};
  // Rank 0 opens memory for each other rank's block.
  const arm a = parse_arm(collective::gather, "single_copy+giver_writes=1");
  const schedule s = a.base->build({.rank = 0, .num_ranks = 3}, a.values);
  const auto code_of = [&](std::byte* address, std::size_t bytes, bool writes) {
    watched.looks = 0;
    std::memset(memory.get(), 0, std::size_t(cell_region::bytes) * 3);
    for (const cell_regions::entry& e : regions) e.region.set_process(::getpid());
    asks.ask(0, address, bytes, writes);
    cell_executor exec(regions, 0, true);
    return exec.run(s, {.input = in.data(), .output = out.data(), .size = {24, 1}}, watch);
  };
  CHECK(code_of(out.data() + 8, 8, true) == 7);
  CHECK(code_of(out.data() + 15, 1, true) == 7);
  CHECK(code_of(out.data() + 8, 9, true) == 42);
  CHECK(code_of(out.data() + 7, 1, true) == 42);
  CHECK(code_of(out.data() + 8, 8, false) == 42);
  CHECK(code_of(in.data(), 8, false) == 42);
}

TEST_CASE("nobody writes into memory whose owner's call has failed") {
  const auto memory = zeroed_regions(2);
  const cell_regions regions = regions_of(memory.get(), 2);
  const arm a = parse_arm(collective::gather, "single_copy+giver_writes=1");
  std::vector<std::byte> in(16, std::byte{1}), out(16, std::byte{2});
  const wait_watch fails{.look = [](void*) { return 42; }};
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    cell_executor exec(regions, rank, true);
    const schedule s = a.base->build({.rank = rank, .num_ranks = 2}, a.values);
    CHECK(exec.run(s, {.input = in.data(), .output = out.data(), .size = {16, 1}}, fails) == 42);
  }
  CHECK(std::all_of(out.begin() + 8, out.end(), [](std::byte b) { return b == std::byte{2}; }));
}

TEST_CASE("a single copy of another length than its two ranks expect is an error") {
  for (const bool writes : {false, true})
    for (const std::int64_t theirs : {4, 8, 12}) {
      CAPTURE(writes, theirs);
      const std::int64_t mine = 8, given = writes ? mine : theirs, wanted = writes ? theirs : mine;
      const auto memory = zeroed_regions(2);
      const cell_regions regions = regions_of(memory.get(), 2);
      const arm a =
          parse_arm(collective::gatherv, writes ? "single_copy+giver_writes=1" : "single_copy");
      const int rank = writes ? 1 : 0;
      std::vector<std::byte> own(16, std::byte{1}), peers(16, std::byte{2});
      const struct {
        std::byte* address;
        std::int64_t bytes;
      } opened{peers.data(), theirs};
      const cell_region& region = regions[1 - rank];
      std::memcpy(region.content(cell_ring::opened, std::uint64_t(rank)), &opened, sizeof opened);
      region.show(cell_ring::opened, std::uint64_t(rank), {});
      const std::vector<extent> blocks{{0, 0}, {0, mine}};
      cell_executor exec(regions, rank, true);
      const schedule s = a.base->build({.rank = rank, .num_ranks = 2}, a.values);
      const binding b{.input = own.data(),
                      .output = own.data(),
                      .size = {1, 1},
                      .input_blocks = blocks,
                      .output_blocks = blocks};
      const std::vector<std::byte>& to = writes ? peers : own;
      const std::byte was = writes ? std::byte{2} : std::byte{1};
      const std::byte is = writes ? std::byte{1} : std::byte{2};
      const bool same = theirs == mine;
      if (same)
        REQUIRE(exec.run(s, b) == 0);
      else
        CHECK_THROWS_WITH(exec.run(s, b),
                          ContainsSubstring("gives " + std::to_string(given)) &&
                              ContainsSubstring("expects " + std::to_string(wanted)));
      const auto end = to.begin() + (same ? mine : 0);
      CHECK(std::all_of(to.begin(), end, [&](std::byte x) { return x == is; }));
      CHECK(std::all_of(end, to.end(), [&](std::byte x) { return x == was; }));
    }
}

TEST_CASE("nothing of a cell is used that was written in an unlike call") {
  const call_mark ours(8, 0, 3);
  const std::pair<call_mark, std::string> unlike[] = {
      {{12, 0, 3}, "has 12 bytes where this rank has 8"},
      {{8, 1, 3}, "has root 1 where this rank has root 0"},
      {{8, 0, 4}, "another call"}};
  for (const char* const name : {"shared_flat", "single_copy"})
    for (const auto& [theirs, text] : unlike) {
      CAPTURE(name, text);
      const auto memory = zeroed_regions(2);
      const cell_regions regions = regions_of(memory.get(), 2);
      const arm a = parse_arm(collective::broadcast, name);
      const std::int64_t nowhere = 8;  // an invalid address
      for (const cell_ring ring : {cell_ring::published, cell_ring::opened})
        for (const std::uint64_t place : {0, 1}) {
          std::memcpy(regions[0].content(ring, place), &nowhere, sizeof nowhere);
          regions[0].show(ring, place, theirs);
        }
      std::vector<std::byte> message(8, std::byte{7});
      cell_executor exec(regions, 1, true);
      const schedule s = a.base->build({.rank = 1, .num_ranks = 2}, a.values);
      try {
        exec.run(s, {.output = message.data(), .size = {8, 1}, .mark = ours});
        FAIL("it ran");
      } catch (const unlike_calls& problem) {
        CHECK_THAT(problem.what(), ContainsSubstring("rank 0 ") && ContainsSubstring(text));
      }
      CHECK(std::ranges::count(message, std::byte{7}) == 8);
    }
}

TEST_CASE("a process is asked for its memory only if it can be had") {
  std::uint64_t word = 4711;
  single_copy_probe probe = single_copy_probe::of(word);
  CHECK(probe.can_copy());
  ++probe.word;  // then another process has that number here
  CHECK(!probe.can_copy());
  probe = single_copy_probe::of(word);
  probe.address = 8;
  CHECK(!probe.can_copy());
  probe = single_copy_probe::of(word);
  probe.process = 0x7ffffff0;  // no process has that number
  CHECK(!probe.can_copy());
  CHECK(word == 4711);
}

TEST_CASE("what does not fit in cells is refused before anything is published") {
  const auto memory = zeroed_regions(2);
  const cell_regions regions = regions_of(memory.get(), 2);
  cell_executor exec(regions, 0, true);
  builder whole({.rank = 0, .num_ranks = 2}, 0, 1);
  whole.publish(buffer::output, {}, 0);
  const schedule s = whole.finish();
  std::vector<std::byte> message(static_cast<std::size_t>(cell_bytes) + 1);
  CHECK_THROWS_AS(exec.run(s, {.output = message.data(), .size = {cell_bytes + 1, 1}}), error);
  const auto with_places = [](std::uint64_t places, auto step) {
    builder many({.rank = 0, .num_ranks = 2}, 0, std::int32_t(places));
    step(many);
    return many.finish();
  };
  const auto publishes = [](builder& b) { b.publish(buffer::output, {}, 0); };
  const auto opens = [](builder& b) { b.offer(buffer::output, {}, 1, 0); };
  const auto [cells, openings] = cell_region::num_cells;
  CHECK(cell_executor::fits(with_places(cells, publishes)));
  CHECK(cell_executor::fits(with_places(openings, opens)));
  for (const schedule& m : {with_places(cells + 1, publishes), with_places(openings + 1, opens)})
    CHECK_THROWS_AS(exec.run(m, {.output = message.data(), .size = {8, 1}}), error);
  for (const cell_ring ring : {cell_ring::published, cell_ring::opened})
    CHECK(!regions[0].shows(ring, 0));
}

TEST_CASE("copies are right wherever source and destination lie in their pages") {
  constexpr std::size_t page = 4096, room = 5 * page;
  std::vector<std::byte> memory(2 * room + 2 * page);
  void* begin = memory.data();
  std::size_t left = memory.size();
  auto* const from = static_cast<std::byte*>(std::align(page, 2 * room, begin, left));
  REQUIRE(from != nullptr);
  std::byte* const to = from + room;
  for (std::size_t k = 0; k < room; ++k) from[k] = std::byte(k * 7 + k / 251);
  for (const std::size_t ahead : {0, 1, 16, 31, 32, 2048, 4095})
    for (const std::size_t bytes : {1, 8, 2047, 2048, 2049, 4095, 4096, 4097, 8192, 10000}) {
      CAPTURE(ahead, bytes);
      std::fill_n(to, room, std::byte{0xee});
      bound_memory copies;
      copies.bind({.input = from,
                   .output = to + ahead,
                   .size = {.units = std::int64_t(bytes), .unit_bytes = 1}});
      copies.lay_out_again({});
      REQUIRE(copies.copy(buffer::input, 0, buffer::output, 0, std::int64_t(bytes)) == 0);
      CHECK(std::equal(from, from + bytes, to + ahead));
      CHECK(std::all_of(to, to + ahead, [](std::byte b) { return b == std::byte{0xee}; }));
      CHECK(to[ahead + bytes] == std::byte{0xee});
    }
}

TEST_CASE("single copies are right wherever source and destination lie in their pages") {
  constexpr std::size_t page = 4096, room = 30 * page;
  std::vector<std::byte> memory(2 * room + 2 * page);
  void* begin = memory.data();
  std::size_t left = memory.size();
  auto* const from = static_cast<std::byte*>(std::align(page, 2 * room, begin, left));
  REQUIRE(from != nullptr);
  std::byte* const to = from + room;
  single_copies copies;
  copies.prepare();
  for (std::size_t k = 0; k < room; ++k) from[k] = std::byte(k * 7 + k / 251);
  for (const std::size_t ahead : {0, 1, 16, 31, 32, 2048})
    for (const std::size_t bytes : {1, 8, 4096, 32767, 32768, 32769, 100'000})
      for (const bool writes : {false, true}) {
        CAPTURE(ahead, bytes, writes);
        std::fill_n(to, room, std::byte{0xee});
        const std::size_t done = writes ? copies.copy_to(::getpid(), to + ahead, from, bytes)
                                        : copies.copy_from(::getpid(), from, to + ahead, bytes);
        CHECK(done == bytes);
        CHECK(std::equal(from, from + bytes, to + ahead));
        CHECK(std::all_of(to, to + ahead, [](std::byte b) { return b == std::byte{0xee}; }));
        CHECK(to[ahead + bytes] == std::byte{0xee});
      }
}
