// SPDX-License-Identifier: BSL-1.0
// The checker must find what is wrong: right schedules are damaged in one place each.
#include "railpass/schedule/checker.hpp"

#include "collectives/verify.hpp"
#include "support/catch.hpp"

#include <functional>
#include <random>

using namespace railpass;

namespace {

arm named(collective op, std::string_view text) { return parse_arm(op, text); }

check_case case_of(collective op, std::int64_t units, std::int64_t unit_bytes = 1) {
  return {.what = describe(op).what, .size = {units, unit_bytes}};
}

check_result checked(const std::vector<schedule>& all, const check_case& c) {
  return checker{}.check(all, c);
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// The first step of this kind, which must be there.
step& find(schedule& s, step_kind kind, int skip = 0) {
  for (step& x : s.steps)
    if (x.kind == kind && skip-- == 0) return x;
  throw error("the test's schedule has no such step");
}

struct mutation {
  const char* what;
  collective op;
  const char* arm;
  int num_ranks;
  bool commutative;
  bool in_place;
  std::function<void(std::vector<schedule>&)> damage;
  std::vector<const char*> message;  // what it must say
};

const mutation mutations[] = {
    {"a dependency is missing: a segment is sent before it has arrived",
     collective::broadcast,
     "pipeline+segment_bytes=1KiB",
     4,
     true,
     false,
     [](auto& all) { find(all[1], step_kind::send).num_dependencies = 0; },
     {"race on unit 0", "rank 1 step 1 (send of output to rank 2, segment 0)",
      "before the end of rank 1 step 0 (receive into output from rank 0, segment 0)"}},
    {"a dependency is missing: a sum is passed on before it is there",
     collective::all_reduce,
     "ring",
     4,
     true,
     false,
     [](auto& all) {
       step& pass = find(all[2], step_kind::send, 1);
       ++pass.first_dependency;  // the second one orders messages
       --pass.num_dependencies;
     },
     {"race on unit", "rank 2 step 3 (send of scratch0 to rank 3, round 0)"}},
    {"in place, the input is overwritten while it is sent",
     collective::all_reduce,
     "recursive_doubling",
     3,
     true,
     true,
     [](auto& all) { find(all[0], step_kind::receive).num_dependencies = 0; },
     {"race on unit 0", "rank 0 step 1 (receive into output from rank 1)",
      "rank 0 step 0 (send of input to rank 1)"}},
    {"a block is shifted at the receiver",
     collective::broadcast,
     "scatter_allgather_ring",
     4,
     true,
     false,
     [](auto& all) { find(all[3], step_kind::receive, 1).blocks.first += 1; },
     {"rank 3"}},
    {"a block is shifted at both ends",
     collective::broadcast,
     "scatter_allgather_ring",
     4,
     true,
     false,
     [](auto& all) {
       find(all[2], step_kind::send, 0).blocks.first = 2;
       find(all[3], step_kind::receive, 0).blocks.first = 2;
     },
     {"race on unit 10", "rank 3 step 0 (receive into output from rank 2)"}},
    {"what is sent was never written",
     collective::broadcast,
     "linear",
     2,
     true,
     false,
     [](auto& all) {
       builder b({.rank = 0, .num_ranks = 2});
       b.send(buffer::scratch0, {}, 1);
       all[0] = b.finish();
     },
     {"rank 0 step 0 (send of scratch0 to rank 1)", "reads unit 0 of scratch0",
      "no step has written"}},
    {"blocks of different lengths meet",
     collective::broadcast,
     "scatter_allgather_ring",
     4,
     true,
     false,
     [](auto& all) { find(all[2], step_kind::receive).blocks.count = 1; },
     {"rank 2 step 0 (receive into output from rank 0)", "matched by rank 0 step 0",
      "expected equal lengths"}},
    {"operands are exchanged",
     collective::all_reduce,
     "allgather_reduce",
     4,
     false,
     false,
     [](auto& all) {
       // The order of the steps stays, the contributions of ranks 1 and 2 change places at rank 3.
       std::swap(find(all[3], step_kind::receive, 0).peer,
                 find(all[3], step_kind::receive, 1).peer);
     },
     {"rank 3 unit 0 of output", "in rank order", "ranks 0 2 1 3"}},
    {"ranks combine in different orders",
     collective::all_reduce,
     "allgather_reduce",
     4,
     true,
     false,
     [](auto& all) {
       std::swap(find(all[3], step_kind::receive, 0).peer,
                 find(all[3], step_kind::receive, 1).peer);
     },
     {"rank 3 unit 0 of output", "expected the same expression as on rank 0", "ranks 0 2 1 3"}},
    {"a contribution is missing",
     collective::all_reduce,
     "reduce_broadcast+fan_out=8",
     4,
     true,
     false,
     [](auto& all) { find(all[0], step_kind::reduce, 1).kind = step_kind::copy; },
     {"rank 0 unit 0 of output", "the contributions of ranks 0 to"}},
    {"a contribution comes twice",
     collective::all_reduce,
     "allgather_reduce",
     4,
     true,
     false,
     [](auto& all) { find(all[0], step_kind::reduce, 1).from = buffer::input; },
     {"rank 0 unit 0 of output", "the contributions of ranks 0 to", "ranks 0 0 2 3"}},
    {"a message goes to the wrong rank",
     collective::broadcast,
     "binomial",
     8,
     true,
     false,
     [](auto& all) { find(all[4], step_kind::send, 1).peer = 7; },
     {"wait for ever",
      "rank 4 step 2 (send of output to rank 7) units [0, 20) has no matching receive",
      "rank 5 step 0 (receive into output from rank 4) units [0, 20) has no matching send"}},
    {"a rank sends to itself",
     collective::broadcast,
     "binomial",
     8,
     true,
     false,
     [](auto& all) { find(all[4], step_kind::send, 1).peer = 4; },
     {"rank 4 step 2", "the rank itself"}},
    {"a receive is missing",
     collective::broadcast,
     "linear",
     4,
     true,
     false,
     [](auto& all) { all[2] = builder({.rank = 2, .num_ranks = 4}).finish(); },
     {"wait for ever", "rank 0 step 0 (send of output to rank 2, round 1)",
      "has no matching receive"}},
    {"a rank's output stays empty",
     collective::broadcast,
     "linear",
     4,
     true,
     false,
     [](auto& all) {
       all[2] = builder({.rank = 2, .num_ranks = 4}).finish();
       builder b({.rank = 0, .num_ranks = 4});
       b.send(buffer::output, {}, 1);
       b.send(buffer::output, {}, 3);
       all[0] = b.finish();
     },
     {"rank 2 unit 0 of output: never written"}},
    {"messages of a pair are not ordered",
     collective::all_reduce,
     "ring",
     3,
     true,
     false,
     [](auto& all) {
       schedule& s = all[1];
       for (dependency& d : s.dependencies)
         if (d.lag == dependency::posted) d.lag = 0;
     },
     {"rank 1 step", "may be posted before step", "although both have the peer"}},
    {"synchronous sends wait in a circle",
     collective::all_reduce,
     "recursive_doubling",
     2,
     true,
     false,
     [](auto& all) {
       for (auto& s : all) {
         builder b({.rank = s.rank, .num_ranks = 2});
         const step_id sent = b.send(buffer::input, {}, 1 - s.rank);
         b.receive(buffer::output, {}, 1 - s.rank, {whole(sent)});
         s = b.finish();
       }
     },
     {"wait for ever", "rank 0 step 0 (send of input to rank 1)", "rank 1 step 0"}},
    {"the input is written",
     collective::all_reduce,
     "ring",
     3,
     true,
     false,
     [](auto& all) { find(all[0], step_kind::receive).to = buffer::input; },
     {"rank 0 step", "writes the input"}},
    {"a loop runs around the end",
     collective::broadcast,
     "scatter_allgather_ring",
     4,
     true,
     false,
     [](auto& all) { find(all[0], step_kind::send, 0).blocks.first = 3; },
     {"rank 0 step 0", "beyond the end"}},
};

}  // namespace

TEST_CASE("damaged schedules are found out, and the message says where") {
  for (const mutation& m : mutations) {
    DYNAMIC_SECTION(m.what) {
      std::vector<schedule> all = build_all(named(m.op, m.arm), m.num_ranks, m.commutative);
      check_case c = case_of(m.op, 20, 256);
      c.commutative = m.commutative;
      c.in_place = m.in_place;
      REQUIRE(checked(all, c).message == "");

      m.damage(all);
      const check_result r = checked(all, c);

      REQUIRE_FALSE(r.ok);
      for (const char* part : m.message) {
        CAPTURE(part, r.message);
        CHECK(contains(r.message, part));
      }
    }
  }
}

TEST_CASE("each dependency of the ring is needed") {
  const arm a = named(collective::all_reduce, "segmented_ring+segment_bytes=1KiB");
  check_case c = case_of(collective::all_reduce, 40, 512);
  c.in_place = true;
  const std::vector<schedule> right = build_all(a, 4, true);
  REQUIRE(checked(right, c).message == "");
  int needed = 0;
  for (std::size_t i = 0; i < right[1].steps.size(); ++i)
    for (std::int32_t d = 0; d < right[1].steps[i].num_dependencies; ++d) {
      std::vector<schedule> all = right;
      step& s = all[1].steps[i];
      auto& list = all[1].dependencies;
      // Move it to the end of the step's own part of the list and shorten that.
      std::swap(list[std::size_t(s.first_dependency + d)],
                list[std::size_t(s.first_dependency + s.num_dependencies - 1)]);
      --s.num_dependencies;
      const check_result r = checked(all, c);
      CAPTURE(i, d, r.message);
      CHECK_FALSE(r.ok);
      ++needed;
    }
  REQUIRE(needed == 9);
}

TEST_CASE("the root only renames ranks in messages") {
  std::vector<schedule> all = build_all(named(collective::broadcast, "binomial"), 8, true);
  find(all[4], step_kind::send, 1).peer = 7;
  check_case c = case_of(collective::broadcast, 20);
  c.root = 3;
  REQUIRE(contains(checked(all, c).message, "rank 7 step 2 (send of output to rank 2)"));
}

TEST_CASE("a schedule that has forgotten its size limit is refused") {
  builder b({.rank = 0, .num_ranks = 2});
  builder other({.rank = 1, .num_ranks = 2});
  for (int i = 0; i < 1500; ++i) {
    b.send(buffer::output, {.parts = 1500, .first = i}, 1);
    other.receive(buffer::output, {.parts = 1500, .first = i}, 0);
  }
  const std::vector<schedule> all{b.finish(), other.finish()};
  const check_result r = checked(all, case_of(collective::broadcast, 20));
  REQUIRE_FALSE(r.ok);
  REQUIRE(contains(r.message, "expected at most 65536"));
}

TEST_CASE("what is ready at the start needs nobody to advance it") {
  const message_size size{1000, 1};
  const auto ready = [&](const char* name, int p) {
    return checked(build_all(named(collective::broadcast, name), p, true),
                   case_of(collective::broadcast, size.units))
        .all_ready_at_start;
  };
  REQUIRE(ready("linear", 8));
  REQUIRE(ready("linear", 65));
  REQUIRE_FALSE(ready("linear", 66));  // more than a window
  REQUIRE(ready("binomial", 2));
  REQUIRE_FALSE(ready("binomial", 8));
  REQUIRE_FALSE(ready("pipeline", 3));
}

TEST_CASE("damaged phases are found out, and the message says where") {
  // Two nodes: ranks 0 to 2, and 3 and 4.
  const std::vector<std::int32_t> nodes{0, 3, 5};
  check_case c = case_of(collective::all_reduce, 5000, 8);
  c.nodes = nodes;
  const std::vector<schedule> right = build_all(
      named(collective::all_reduce, "nodes_shared_recursive_doubling"), 5, true, 0, nodes);
  REQUIRE(right[0].phases.size() == 3);
  REQUIRE(checked(right, c).message == "");
  const auto message_of = [&](const auto& damage) {
    std::vector<schedule> all = right;
    damage(all);
    const check_result r = checked(all, c);
    CHECK_FALSE(r.ok);
    return r.message;
  };
  CHECK_THAT(message_of([](auto& all) { find(all[4].phases[0], step_kind::publish).place = 1; }),
             ContainsSubstring("rank 4 phase 0 step 0"));
  CHECK_THAT(message_of([](auto& all) { find(all[3].phases[2], step_kind::publish).place = 7; }),
             ContainsSubstring("rank 3 phase 2 step 0") && ContainsSubstring("the place is 7"));
  CHECK_THAT(
      message_of([](auto& all) { find(all[4].phases[2], step_kind::fetch).peer = 0; }),
      ContainsSubstring("rank 4 phase 2") && ContainsSubstring("the peer is on another node"));
  CHECK_THAT(message_of([](auto& all) { all[2].phases.pop_back(); }),
             ContainsSubstring("rank 2: there are 2 phases, rank 0 has 3"));
  CHECK_THAT(message_of([](auto& all) { std::swap(all[1].phases[0], all[1].phases[1]); }),
             ContainsSubstring("rank 1 phase 0: is not in shared memory, unlike that of rank 0"));
  CHECK_THAT(message_of([](auto& all) { all[0].steps = all[0].phases[0].steps; }),
             ContainsSubstring("rank 0: has both steps and phases"));
  CHECK_THAT(message_of([](auto& all) { all[0].phases[1] = all[0]; }),
             ContainsSubstring("rank 0 phase 1: has phases itself"));
  // The sum goes down before it is complete.
  CHECK_THAT(
      message_of([](auto& all) {
        for (schedule& s : all) std::swap(s.phases[1], s.phases[2]);
      }),
      ContainsSubstring("rank 1 unit 0 of output: expected the contributions of ranks 0 to 4"));
  // Without a phase across nodes each has a sum of its own.
  CHECK_THAT(message_of([](auto& all) {
               for (schedule& s : all) s.phases.erase(s.phases.begin() + 1);
             }),
             ContainsSubstring("expected the contributions of ranks 0 to 4 once each"));
}

TEST_CASE("of a barrier each phase is needed") {
  const std::vector<std::int32_t> nodes{0, 3, 5};
  check_case c = case_of(collective::barrier, 5);
  c.nodes = nodes;
  const std::vector<schedule> right =
      build_all(named(collective::barrier, "nodes_shared_dissemination"), 5, true, 0, nodes);
  REQUIRE(checked(right, c).message == "");
  for (std::size_t k = 0; k < right[0].phases.size(); ++k) {
    std::vector<schedule> all = right;
    for (schedule& s : all) s.phases.erase(s.phases.begin() + std::ptrdiff_t(k));
    const check_result r = checked(all, c);
    CAPTURE(k, r.message);
    CHECK_FALSE(r.ok);
    CHECK((contains(r.message, "may end before") || contains(r.message, "no step has written")));
  }
}
