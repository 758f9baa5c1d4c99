// SPDX-License-Identifier: BSL-1.0
//
// Function sets and regions on real ranks. Time is simulated: each version sets its own.
#include "lib/runtime/process.hpp"
#include "railpass/function_set.hpp"
#include "railpass/mpi.hpp"
#include "railpass/region.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

/// During its life, time passes on this rank only as the test says.
class planted_clock {
 public:
  planted_clock() {
    (void)mpi::last_arm(MPI_COMM_WORLD);  // creates the process object
    process::get()->use_clock([] { return now_s_; });
  }
  ~planted_clock() { process::get()->use_clock(steady_clock_s); }
  planted_clock(const planted_clock&) = delete;
  planted_clock& operator=(const planted_clock&) = delete;

  static void pass(double seconds) { now_s_ += seconds; }
  static double now_s() { return now_s_; }

 private:
  static inline double now_s_ = 1000;
};

/// Whether `value` is equal on all ranks.
bool is_same_on_all(MPI_Comm comm, int value) {
  std::array<int, 2> both{value, -value};
  MPI_Allreduce(MPI_IN_PLACE, both.data(), 2, MPI_INT, MPI_MAX, comm);
  return both[0] == -both[1];
}
bool on_all(MPI_Comm comm, bool holds) {
  int all = holds ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  return all != 0;
}

/// Six versions; only one combination is fast, and each attribute alone makes the first version
/// slower.
struct tiles {
  int ran = -1;
  function_set<void(std::vector<double>&)> set;

  tiles(const std::string& name, MPI_Comm comm, function_set_options options = {},
        const std::string& best = "t16u4")
      : set(name, comm, {"tile", "unroll"}, std::move(options)) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    int number = 0;
    for (const int tile : {8, 16, 32})
      for (const int unroll : {1, 4}) {
        const std::string version = "t" + std::to_string(tile) + "u" + std::to_string(unroll);
        const double seconds =
            version == best ? 0.5e-3 : 1e-3 * (1 + 0.05 * std::log2(tile) + 0.05 * unroll);
        set.add(version, {tile, unroll}, [=, this](std::vector<double>& v) {
          ran = number;
          v[0] += 1;
          planted_clock::pass(seconds * (1 + 0.01 * rank));
        });
        ++number;
      }
  }
};

/// The error of a call on this rank; empty: no error.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("all ranks take the same version in each call, and the planted best is found") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  const std::string policy = GENERATE("knowledge_gradient", "adcl_brute_force", "thompson");
  CAPTURE(policy);
  tiles step("step", world, {.policy = policy});
  std::vector<double> field(4, 0);
  CHECK(step.set.winner().empty());
  CHECK(step.set.last().empty());
  bool alike = true;
  for (int call = 0; call < 400; ++call) {
    step.set(field);
    alike = is_same_on_all(world, step.ran) && alike;
  }
  CHECK(alike);
  CHECK(field[0] == 400);
  CHECK(step.set.last() == "t16u4");
  CHECK(step.set.winner() == "t16u4");
}

TEST_CASE("requests of one set, shape and policy share what they learn, others do not") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  std::vector<double> field(1);
  {
    tiles step("step", world, {.shape = {64, 64}});
    for (int call = 0; call < 300; ++call) step.set(field);
    REQUIRE(step.set.winner() == "t16u4");
  }
  tiles again("step", world, {.shape = {64, 64}});
  again.set(field);
  CHECK(again.set.winner() == "t16u4");
  tiles other("step", world, {.shape = {64, 32}}, "t32u1");
  other.set(field);
  CHECK(other.set.winner().empty());
  for (int call = 0; call < 300; ++call) other.set(field);
  CHECK(other.set.winner() == "t32u1");
  again.set(field);
  CHECK(again.set.winner() == "t16u4");
}

TEST_CASE("a product of values, minus what is excluded") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  function_set<int(int)> set("product", world, {"tile", "layout"});
  set.add_product(
      {{8, 16}, {"row", "column"}},
      [](const attribute_combination& c, int x) {
        planted_clock::pass(c["layout"].text() == "column" ? 1e-3 : 2e-3);
        return x * int(c["tile"].number());
      },
      [](const attribute_combination& c) {
        return c["tile"].number() == 16 && c["layout"].text() == "row";
      });
  CHECK(set(3) == 24);
  for (int call = 0; call < 200; ++call) {
    const int result = set(3);
    CHECK((result == 24 || result == 48));
  }
  CHECK(set.winner().ends_with("layout=column"));
}

TEST_CASE("ranks that disagree on a set get a clear error on all ranks") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() == 1) return;
  const bool is_last = world.rank() == world.size() - 1;
  const auto make = [&](const char* name, std::vector<std::string> attributes,
                        function_set_options options = {}) {
    return error_of(
        [&] { function_set<void()>(name, world, std::move(attributes), std::move(options)); });
  };
  CHECK_THAT(make(is_last ? "stop" : "step", {}), ContainsSubstring("'function set stop'"));
  CHECK_THAT(make("step", {is_last ? "unroll" : "tile"}),
             ContainsSubstring("'attribute tile'") && ContainsSubstring("'attribute unroll'"));
  CHECK_THAT(make("step", {}, {.shape = {is_last ? 3 : 4}}), ContainsSubstring("shape 3"));
  CHECK_THAT(make(is_last ? "no name" : "step", {}),
             ContainsSubstring("letters") &&
                 ContainsSubstring("on rank " + std::to_string(world.size() - 1)));
  CHECK_THAT(make("step", {}, {.features = {is_last ? 3 : 4}}), ContainsSubstring("feature 3"));
  CHECK_THAT(make("step", {}, {.features = {is_last ? -1 : 1}}), ContainsSubstring("0 or more"));
  CHECK_THAT(make("step", {}, {.policy = is_last ? "telepathy" : ""}),
             ContainsSubstring("telepathy"));

  function_set<void()> set("versions", world, {"tile"});
  set.add("a", {8}, [] {});
  set.add("b", {is_last ? 32 : 16}, [] {});
  CHECK_THAT(error_of([&] { set(); }),
             ContainsSubstring("b (tile=16)") && ContainsSubstring("b (tile=32)"));
  CHECK(on_all(world, true));  // no rank waits
}

TEST_CASE("what is wrong on all ranks is said on all ranks") {
  const communicator world = communicator::duplicate_of_world();
  const auto make = [&](const char* name, std::vector<std::string> attributes) {
    return error_of([&] { function_set<void()>(name, world, std::move(attributes)); });
  };
  CHECK_THAT(make("broadcast", {}), ContainsSubstring("collective"));
  CHECK_THAT(make("", {}), ContainsSubstring("expected a name"));
  CHECK_THAT(make("a,b", {}), ContainsSubstring("expected a name"));
  CHECK_THAT(make("step", {"x", "x"}), ContainsSubstring("twice"));
  CHECK_THAT(error_of([] { function_set<void()>("step", MPI_COMM_NULL); }),
             ContainsSubstring("intra-communicator"));
  CHECK_THAT(error_of([&] { region("a b", world); }), ContainsSubstring("expected a name"));

  function_set<void()> set("wrong", world, {"tile"});
  CHECK_THAT(error_of([&] { set(); }), ContainsSubstring("no version"));
  CHECK_THAT(error_of([&] { set.add("a", [] {}); }), ContainsSubstring("1 attributes, found 0"));
  CHECK_THAT(error_of([&] { set.add("a b", {1}, [] {}); }), ContainsSubstring("expected a name"));
  set.add("a", {1}, [] {});
  CHECK_THAT(error_of([&] { set.add("a", {2}, [] {}); }), ContainsSubstring("there already"));
  set();
  CHECK_THAT(error_of([&] { set.add("b", {2}, [] {}); }), ContainsSubstring("first call"));
  CHECK_THAT(error_of([&] { function_set<void()>("wrong", world, {"other"}); }),
             ContainsSubstring("other attributes"));
  function_set<void()> others("wrong", world, {"tile"});
  others.add("z", {1}, [] {});
  CHECK_THAT(error_of([&] { others(); }), ContainsSubstring("other versions"));
}

TEST_CASE("a version's exception is its rank's at once, and an error on the others") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  const bool in_region = GENERATE(false, true);
  const int thrower = world.size() / 2;
  region around("around", world);
  function_set<void(int)> set("throws", world);
  for (const char* const name : {"a", "b"})
    set.add(name, [&](int call) {
      planted_clock::pass(1e-3);
      if (call == 20 && world.rank() == thrower) throw std::runtime_error("mine");
    });
  int threw_in = -1;
  std::string what;
  for (int call = 0; call < 5000 && threw_in < 0; ++call) {
    try {
      std::unique_ptr<region::entry> entered;
      if (in_region) entered.reset(new region::entry(around.enter()));
      set(call);
    } catch (const std::exception& e) {
      threw_in = call;
      what = e.what();
    }
  }
  if (world.rank() == thrower) {
    CHECK(threw_in == 20);
    CHECK(what == "mine");
  } else {
    CHECK(threw_in >= 0);  // before its own call 20, too, if the rank is behind
    CHECK_THAT(what, ContainsSubstring("threw an exception"));
  }
  // Every later call fails, too, except on a rank alone, for which no rank waits.
  const std::string later = error_of([&] { in_region ? (void)around.enter() : set(0); });
  CHECK((later.find("threw an exception") != std::string::npos) == (world.size() > 1));
}

TEST_CASE("versions with different results are an error on all ranks when results are compared") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  mpi::configure(world, "verify", "1");
  const bool is_wrong = GENERATE(false, true);
  const int liar = world.size() - 1;
  function_set<void(std::vector<double>&)> set(is_wrong ? "lies" : "honest", world);
  set.add("first", [](std::vector<double>& v) {
    planted_clock::pass(1e-3);
    v[0] += 1;
  });
  set.add("second", [&](std::vector<double>& v) {
    planted_clock::pass(0.5e-3);
    v[0] += is_wrong && world.rank() == liar ? 2 : 1;
  });
  using field = std::vector<double>;
  set.verify_with([](const field& v) { return v; },
                  [](const field& before, field& v) { v = before; },
                  [](const field& a, const field& b) { return a == b; });
  field v(1, 0);
  std::string said;
  int calls = 0;
  for (; calls < 100 && said.empty(); ++calls) said = error_of([&] { set(v); });
  CHECK(v[0] == calls);  // the first version's results stay
  if (is_wrong) {
    CHECK_THAT(said,
               ContainsSubstring("RAILPASS_VERIFY: function set 'lies': version 'second' gives "
                                 "another result, compared with version 'first'"));
  } else {
    CHECK(said.empty());
    CHECK(set.winner() == "second");
  }
}

TEST_CASE("settings ask for versions as for arms") {
  const planted_clock clock;
  const test::records log;
  const auto used_with = [&](const char* setting, const char* value) {
    const communicator world = communicator::duplicate_of_world();
    mpi::configure(world, setting, value);
    tiles step("asked", world);
    std::vector<double> field(1);
    std::string used;
    for (int call = 0; call < 100; ++call) {
      step.set(field);
      if (used.find(step.set.last()) == std::string::npos) used += step.set.last() + " ";
    }
    return used + "| " + step.set.winner();
  };
  CHECK(used_with("use", "broadcast:binomial,asked:t32u4") == "t32u4 | t32u4");
  CHECK(used_with("reproducible", "1") == "t8u1 | t8u1");
  CHECK(used_with("enable", "0") == "t8u1 | t8u1");
  CHECK(used_with("policy", "native") == "t8u1 | t8u1");
  CHECK(log.texts.empty());
  CHECK(used_with("use", "asked:t64u1") == "t8u1 | t8u1");
  CHECK(log.any_has("has no version 't64u1'"));
}

TEST_CASE("where a summary is asked for, calls of a pinned version are timed, and it alone runs") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  MPI_Comm_set_name(world, "pinned set");
  mpi::configure(world, "use", "timed:t32u4");
  mpi::configure(world, "summary", "on");
  tiles step("timed", world);
  std::vector<double> field(1);
  for (int call = 0; call < 200; ++call) {
    step.set(field);
    CHECK(step.set.last() == "t32u4");
  }
  CHECK(step.set.winner() == "t32u4");
  if (world.rank() != 0) return;
  const auto contexts = process::get()->statistics().contexts;
  const auto context =
      std::ranges::find(contexts, "pinned set", &select::context_statistics::communicator);
  REQUIRE(context != contexts.end());
  CHECK(context->policy == "fixed");
  CHECK(context->current_arm == "t32u4");
  for (const select::arm_statistics& a : context->arms) {
    CHECK(a.calls == (a.arm == "t32u4" ? 200 : 0));
    CHECK((a.times.samples > 0) == (a.arm == "t32u4"));
  }
}

TEST_CASE("statistics speak of sets as of collectives") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  region solve("solve", world);
  tiles step("told", world, {.shape = {8, 4}});
  std::vector<double> field(1);
  for (int call = 0; call < 100; ++call) step.set(field);
  for (int call = 0; call < 50; ++call) {
    const auto timed = solve.enter();
    step.set(field);
  }
  std::vector<std::string> told;
  for (const auto& c : process::get()->statistics().contexts) {
    if (c.collective != "told") continue;
    told.push_back(c.operation);
    CHECK(c.calls == (c.operation == "set+shape=8x4" ? 100 : 50));
    CHECK(c.baseline == "t8u1");
    CHECK(c.arms.size() == 6);
    CHECK(c.reason.find("native") == std::string::npos);
    CHECK(c.reason.find("t8u1") != std::string::npos);
    CHECK(c.arms[0].times.mean_s ==
          Approx(1e-3 * 1.2 * (1 + 0.01 * (world.size() - 1))).epsilon(0.01));
  }
  const std::vector<std::string> expected{"set+shape=8x4", "set+shape=8x4+region=solve"};
  CHECK(told == (world.rank() == 0 ? expected : std::vector<std::string>{}));
}

TEST_CASE("a rank's own set learns by itself") {
  const planted_clock clock;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  function_set<void()> set("own" + std::to_string(rank), {"way"});
  for (int way = 0; way < 3; ++way)
    set.add("way" + std::to_string(way), {way},
            [=] { planted_clock::pass(way == rank % 3 ? 1e-3 : 2e-3); });
  for (int call = 0; call < 200 + rank; ++call) set();
  CHECK(set.winner() == "way" + std::to_string(rank % 3));
}

TEST_CASE("calls after the communicator is gone are the first version's") {
  const planted_clock clock;
  std::vector<double> field(1);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  std::optional<communicator> world(made);
  tiles step("left", *world);
  for (int call = 0; call < 100; ++call) step.set(field);
  world.reset();
  step.set(field);
  CHECK(step.set.last() == "t8u1");
}

TEST_CASE("a mesh that changes its size finds the planted best version sooner by its features") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  const bool in_region = GENERATE(false, true);
  region solve("solve", world);
  std::vector<double> field(1);
  const auto others_taken = [&](bool near) {  // after the first size
    int taken = 0;
    for (const std::int64_t bytes : {4096, 5000, 3300, 6000, 4500}) {
      const std::string name = near ? "near" : "apart";
      tiles step(name, world,
                 near ? function_set_options{.features = {bytes, 64}}
                      : function_set_options{.shape = {bytes, 64}});
      for (int call = 0; call < 60; ++call) {
        std::unique_ptr<region::entry> entered;
        if (in_region) entered.reset(new region::entry(solve.enter()));
        step.set(field);
        if (bytes != 4096) taken += step.set.last() != "t16u4";
      }
      if (near && bytes != 4096) CHECK(step.set.last() == "t16u4");
    }
    return taken;
  };
  const int near = others_taken(true), apart = others_taken(false);
  CHECK(is_same_on_all(world, near));
  CHECK(is_same_on_all(world, apart));
  CHECK(2 * near < apart);
}

TEST_CASE("features say what is near, not what is the same") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  std::vector<double> field(1);
  const auto play = [&](function_set_options options, const std::string& best) {
    tiles step("step", world, std::move(options), best);
    for (int call = 0; call < 400; ++call) step.set(field);
    return step.set.winner();
  };
  CHECK(play({.features = {1000}}, "t16u4") == "t16u4");
  // Near or not, another version may be the best one there.
  CHECK(play({.features = {1500}}, "t32u1") == "t32u1");
  CHECK(play({.features = {1 << 20}}, "t8u4") == "t8u4");
  CHECK(play({.features = {1000}}, "t16u4") == "t16u4");
  const auto is_told = [&](std::int64_t feature, feature_distance distance) {
    tiles other("step", world, {.features = {feature}, .distance = std::move(distance)});
    other.set(field);
    const std::string kind = "set+features=" + std::to_string(feature);
    for (const auto& c : process::get()->statistics().contexts)
      if (c.operation == kind)
        return std::ranges::any_of(c.arms, [](const auto& a) { return a.prior.has_value(); });
    return false;
  };
  // With the program's own distances.
  CHECK_FALSE(is_told(1001, [](auto, auto) -> double { throw 1; }));
  CHECK_FALSE(is_told(1002, [](auto, auto) { return 4.0; }));
  CHECK(is_told(1003, {}) == (world.rank() == 0));
  CHECK(is_told(1 << 30, [](auto, auto) { return 1.0; }) == (world.rank() == 0));
}

TEST_CASE("where a set has too many sizes the nearest one that is known serves") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  std::vector<double> field(1);
  for (std::int64_t size = 1000; size < 1300; ++size) {
    tiles step("step", world, {.features = {size}});
    for (int call = 0; call < (size == 1000 ? 300 : 1); ++call) step.set(field);
  }
  tiles last("step", world, {.features = {999}}), far("step", world, {.features = {1}});
  last.set(field);
  CHECK(last.set.winner() == "t16u4");
  far.set(field);
  CHECK(far.set.last() == "t8u1");
}

// ---- regions

namespace {

/// An exchange beside a computation. Each alone, the eager start of the exchange and the streaming
/// computation are the fastest versions. But an eager exchange advances only in the wait, and
/// streaming delays an offloaded exchange.
struct overlapping {
  bool eager = true, streams = true;
  function_set<void()> begin, compute;

  explicit overlapping(MPI_Comm comm) : begin("begin", comm), compute("compute", comm) {
    begin.add("eager", [this] { eager = true, planted_clock::pass(0.1e-3); });
    begin.add("offloaded", [this] { eager = false, planted_clock::pass(0.4e-3); });
    compute.add("streaming", [this] { streams = true, planted_clock::pass(2.8e-3); });
    compute.add("tiled", [this] { streams = false, planted_clock::pass(3.0e-3); });
  }
  void iterate() {
    begin();
    compute();
    planted_clock::pass(eager ? 2e-3 : streams ? 1e-3 : 0);  // the rest of the exchange
  }
};

}  // namespace

TEST_CASE("a region finds what is best together where each operation alone chooses wrongly") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  const auto iteration_s = [](overlapping& both) {
    const double began_s = planted_clock::now_s();
    both.iterate();
    return planted_clock::now_s() - began_s;
  };
  const auto last_s = [&](auto enter) {
    overlapping both(world);
    double took_s = 0;
    for (int k = 0; k < 800; ++k) {
      [[maybe_unused]] const auto timed = enter();
      took_s = iteration_s(both);
    }
    CHECK(is_same_on_all(world, 2 * both.eager + both.streams));
    return std::pair{both.begin.winner() + " " + both.compute.winner(), took_s};
  };
  const auto alone = last_s([] { return 0; });
  CHECK(alone.first == "eager streaming");
  CHECK(alone.second == Approx(4.9e-3));
  region solve("solve", world);
  const auto together = last_s([&] { return solve.enter(); });
  CHECK(together.first == "offloaded tiled");
  CHECK(together.second == Approx(3.4e-3));
}

TEST_CASE("what several sets of a region cost to learn is the sum over them") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  mpi::configure(world, "policy", "adcl_brute_force");
  region solve("solve", world);
  std::vector<std::unique_ptr<tiles>> sets;
  for (const char* const name : {"one", "two", "three"})
    sets.push_back(std::make_unique<tiles>(name, world));
  std::vector<double> field(1);
  constexpr int trials = 3 * 6 * 30;
  int entries = 0, trying_at_once = 0;
  for (; entries < 2 * trials; ++entries) {
    const auto timed = solve.enter();
    int trying = 0;
    for (const auto& one : sets) {
      one->set(field);
      trying += one->set.last() != "t8u1";
    }
    if (entries < trials / 2) trying_at_once = std::max(trying_at_once, trying);
  }
  CHECK(trying_at_once == 1);
  for (const auto& one : sets) CHECK(one->set.winner() == "t16u4");
}

TEST_CASE("regions end by whatever way the program leaves them, and nest") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  region outer("outer", world), inner("inner", world);
  tiles step("step", world);
  std::vector<double> field(1);
  const auto iterate = [&](int k) {
    const auto timed = outer.enter();
    planted_clock::pass(1e-3);
    {
      const auto within = inner.enter();
      const auto again = inner.enter();
      step.set(field);
      if (k % 3 == 0) return;                                       // early
      if (k % 3 == 1) throw std::runtime_error("not a version's");  // on all ranks
    }
    planted_clock::pass(1e-3);
  };
  for (int k = 0; k < 600; ++k) try {
      iterate(k);
    } catch (const std::runtime_error&) {
    }
  CHECK(step.set.winner() == "t16u4");
  // Outside of regions the set's own calls count, and nothing is known yet.
  step.set(field);
  CHECK(step.set.winner().empty());
}

TEST_CASE("a region teaches sets of the same ranks only") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  MPI_Comm reversed = MPI_COMM_NULL, half = MPI_COMM_NULL;
  MPI_Comm_split(world, 0, -world.rank(), &reversed);
  MPI_Comm_split(world, world.rank() % 2, world.rank(), &half);
  const communicator same(reversed), part(half);
  region solve("solve", world);
  tiles taught("taught", same), apart("apart", part);
  std::vector<double> field(1);
  const auto iterate = [&] {
    taught.set(field);
    apart.set(field);
    // Time that the set's calls do not show.
    if (taught.set.last() == "t32u1") planted_clock::pass(-0.9e-3);
    if (apart.set.last() == "t32u1" && world.size() > 1) planted_clock::pass(-0.9e-3);
  };
  for (int k = 0; k < 600; ++k) {
    const auto timed = solve.enter();
    iterate();
  }
  CHECK(taught.set.winner() == "t32u1");
  CHECK(apart.set.winner() == "t16u4");
}

TEST_CASE("a set learns alone once the communicator of its region has been freed") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  for (const int entries : {5, 6, 7, 20}) {
    const communicator own = communicator::duplicate_of_world();
    tiles taught("taught", own);
    MPI_Comm whole = MPI_COMM_NULL;
    MPI_Comm_dup(world, &whole);
    region solve("solve", whole);
    std::vector<double> field(1);
    for (int k = 0; k < 300; ++k) {
      if (k == entries) MPI_Comm_free(&whole);
      const auto timed = solve.enter();
      taught.set(field);
      // Versions must be the same on all ranks.
      std::string first = taught.set.last();
      first.resize(16);
      MPI_Bcast(first.data(), 16, MPI_CHAR, 0, world);
      CHECK(taught.set.last() == first.c_str());
    }
    CHECK(taught.set.winner() == "t16u4");
  }
}

TEST_CASE("a request's calls never take what it leaves out, and the others' may") {
  const planted_clock clock;
  const communicator world = communicator::duplicate_of_world();
  std::vector<double> field(1);
  {
    tiles step("step", world, {.without = {"t16u4", "t8u4"}}), all("step", world);
    for (int call = 0; call < 300; ++call) {
      step.set(field);
      CHECK(step.set.last() != "t16u4");
      CHECK(step.set.last() != "t8u4");
      all.set(field);
    }
    CHECK(all.set.winner() == "t16u4");
  }
  tiles unknown("step", world, {.without = {"t64u1"}}), first("step", world, {.without = {"t8u1"}});
  CHECK_THAT(error_of([&] { unknown.set(field); }),
             ContainsSubstring("there is no version 't64u1' to leave out"));
  CHECK_THAT(error_of([&] { first.set(field); }),
             ContainsSubstring("the first version, 't8u1', cannot be left out"));

  const communicator other = communicator::duplicate_of_world();
  mpi::configure(other, "use", "step:t16u4");
  tiles without("step", other, {.without = {"t16u4"}}), with("step", other);
  without.set(field);
  CHECK(without.set.last() == "t8u1");
  with.set(field);
  CHECK(with.set.last() == "t16u4");
}
