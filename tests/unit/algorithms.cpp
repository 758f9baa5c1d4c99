// SPDX-License-Identifier: BSL-1.0
// Every algorithm, proved by the checker at every number of ranks up to 64, and run with real
// values in random order by an interpreter that shares nothing with the checker.
#include "collectives/verify.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/seed.hpp"

#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace railpass;

namespace {

// x -> a x + b modulo a prime: composition is associative and does not commute.
struct affine {
  std::uint64_t a = 0, b = 0;
  static constexpr std::uint64_t prime = 2147483647;
  friend affine operator*(const affine& f, const affine& g) {  // first g, then f
    return {f.a * g.a % prime, (f.a * g.b + f.b) % prime};
  }
  friend bool operator==(const affine&, const affine&) = default;
};
double add(double a, double b) { return a + b; }
affine add(const affine& a, const affine& b) { return a * b; }

// The buffers of each rank.
template <class Value>
using memory_of_ranks = std::vector<std::array<std::vector<Value>, max_buffers>>;

// Runs one phase of the schedules of all ranks. Among the instances that may start, a random one is
// next. Sends are buffered.
template <class Value>
void run_phase(const std::vector<schedule>& all, const message_size& size, bool in_place,
               memory_of_ranks<Value>& memory, std::mt19937& random) {
  struct place {
    std::int64_t started = 0;
    std::vector<bool> done;
    std::int64_t first_done() const {
      return std::find(done.begin(), done.end(), false) - done.begin();
    }
  };
  const std::size_t p = all.size();
  const auto segment_units = size.segment_units(all[0].segment_bytes);
  std::vector<std::vector<place>> places(p);
  // Messages in the order of posting, and receives without a message: (step, instance).
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::vector<Value>>> sent;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::pair<std::size_t, std::int64_t>>>
      waiting;
  for (std::size_t v = 0; v < p; ++v)
    for (const step& s : all[v].steps)
      places[v].push_back(
          {0, std::vector<bool>(std::size_t(s.rounds * segments_per_round(s, segment_units, size)),
                                false)});
  const auto extent_of = [&](const step& s, std::int64_t i) {
    const std::int64_t segments = segments_per_round(s, segment_units, size);
    return instance_extent(s, std::int32_t(i / segments), i % segments, segment_units, size);
  };
  // Shown data by rank, place and segment: the values and the step.
  std::map<std::array<std::int64_t, 3>, std::pair<std::vector<Value>, const step*>> shown;
  const auto place_of = [&](buffer b) {
    return in_place && b == buffer::input ? std::size_t(1) : std::size_t(b);
  };
  const auto may_start = [&](std::size_t v, std::size_t i) {
    const step& s = all[v].steps[i];
    const place& mine = places[v][i];
    if (mine.started == std::int64_t(mine.done.size())) return false;
    const std::int64_t segments = segments_per_round(s, segment_units, size);
    for (const dependency& d : all[v].dependencies_of(s)) {
      const place& other = places[v][std::size_t(d.step)];
      const std::int64_t awaited = instances_awaited(
          d, std::int32_t(mine.started / segments), mine.started % segments, segments,
          all[v].steps[std::size_t(d.step)].rounds, std::int64_t(other.done.size()));
      if ((d.lag == dependency::posted ? other.started : other.first_done()) < awaited)
        return false;
    }
    return !looks(s.kind) || extent_of(s, mine.started).size() == 0 ||
           shown.contains({s.peer, s.place, mine.started});
  };
  for (;;) {
    // Possible events: a step starts an instance, or the oldest message of a pair is received.
    std::vector<std::pair<std::size_t, std::size_t>> starts, pairs;
    for (std::size_t v = 0; v < p; ++v)
      for (std::size_t i = 0; i < places[v].size(); ++i)
        if (may_start(v, i)) starts.emplace_back(v, i);
    for (const auto& [pair, messages] : sent)
      if (!messages.empty() && !waiting[pair].empty()) pairs.push_back(pair);
    if (starts.empty() && pairs.empty()) break;
    // Several events at a time are faster; each is still random.
    std::shuffle(starts.begin(), starts.end(), random);
    std::shuffle(pairs.begin(), pairs.end(), random);
    starts.resize((starts.size() + 1) / 2);
    if (random() % 2 == 0) pairs.resize((pairs.size() + 1) / 2);
    for (const auto& [v, i] : starts) {
      const step& s = all[v].steps[i];
      place& mine = places[v][i];
      const std::int64_t k = mine.started++;
      const extent e = extent_of(s, k);
      auto &from = memory[v][place_of(s.from)], &to = memory[v][place_of(s.to)];
      const auto peer = std::size_t(
          peer_of(s, std::int32_t(k / segments_per_round(s, segment_units, size)), int(p)));
      if (s.kind == step_kind::receive && e.size() > 0) {
        waiting[{peer, v}].emplace_back(i, k);
        continue;
      }
      mine.done[std::size_t(k)] = true;
      if (shows(s.kind))
        shown[{std::int64_t(v), s.place, k}] = {{from.begin() + e.begin, from.begin() + e.end}, &s};
      const std::vector<Value>* seen = nullptr;
      Value* opened = nullptr;  // in the peer's memory
      if (looks(s.kind) && e.size() > 0) {
        const auto& [values, other] = shown[{s.peer, s.place, k}];
        REQUIRE(values.size() == std::size_t(e.size()));
        if (is_single_copy(s.kind)) REQUIRE(other->peer == std::int32_t(v));
        seen = &values;
        opened = memory[peer][place_of(other->from)].data() + extent_of(*other, k).begin;
      }
      if (s.kind == step_kind::send && e.size() > 0)
        sent[{v, peer}].emplace_back(from.begin() + e.begin, from.begin() + e.end);
      for (std::int64_t u = e.begin; u < e.end; ++u) {
        if (s.kind == step_kind::copy) to[std::size_t(u)] = from[std::size_t(u)];
        if (s.kind == step_kind::reduce)
          to[std::size_t(u)] = add(from[std::size_t(u)], to[std::size_t(u)]);
        if (s.kind == step_kind::fetch) to[std::size_t(u)] = (*seen)[std::size_t(u - e.begin)];
        if (s.kind == step_kind::combine)
          to[std::size_t(u)] = add((*seen)[std::size_t(u - e.begin)], to[std::size_t(u)]);
        if (s.kind == step_kind::get) to[std::size_t(u)] = opened[u - e.begin];
        if (s.kind == step_kind::put) opened[u - e.begin] = from[std::size_t(u)];
      }
    }
    for (const auto& pair : pairs) {
      const auto [i, k] = waiting[pair].front();
      const extent e = extent_of(all[pair.second].steps[i], k);
      const auto& message = sent[pair].front();
      REQUIRE(std::int64_t(message.size()) == e.size());
      std::copy(message.begin(), message.end(),
                memory[pair.second][std::size_t(all[pair.second].steps[i].to)].begin() + e.begin);
      places[pair.second][i].done[std::size_t(k)] = true;
      waiting[pair].erase(waiting[pair].begin());
      sent[pair].erase(sent[pair].begin());
    }
  }
  for (std::size_t v = 0; v < p; ++v)
    for (const place& x : places[v]) REQUIRE(x.first_done() == std::int64_t(x.done.size()));
}

// Runs all phases one after the other. Returns the outputs by virtual rank.
template <class Value>
std::vector<std::vector<Value>> run(const std::vector<schedule>& all, const message_size& size,
                                    bool in_place, const std::vector<std::vector<Value>>& inputs,
                                    bool is_broadcast, std::mt19937& random) {
  const std::size_t p = all.size();
  memory_of_ranks<Value> memory(p);
  for (std::size_t v = 0; v < p; ++v) {
    for (auto& m : memory[v]) m.resize(std::size_t(size.units));
    memory[v][0] = inputs[v];
    if (in_place || (is_broadcast && v == 0)) memory[v][1] = inputs[v];
  }
  for (std::size_t k = 0; k < phases_of(all[0]).size(); ++k) {
    std::vector<schedule> phase;
    for (const schedule& s : all) phase.push_back(phases_of(s)[k]);
    run_phase(phase, size, in_place, memory, random);
  }
  std::vector<std::vector<Value>> outputs;
  for (std::size_t v = 0; v < p; ++v) outputs.push_back(memory[v][1]);
  return outputs;
}

// The default arm of every algorithm, an arm with other values, and an arm with segments.
std::vector<arm> some_arms(collective op, bool commutative) {
  std::vector<arm> arms;
  for (const algorithm* a : all_algorithms) {
    if (a->op != op || a->is_native() || (a->needs.commutative && !commutative)) continue;
    arms.push_back(default_arm(*a));
    arm other = arms.back();
    for (int i = 0; i < a->num_parameters(); ++i)
      other.values[std::size_t(i)] = a->parameter_list[std::size_t(i)].values[1];
    if (!(other == arms.back())) arms.push_back(other);
  }
  return arms;
}

// The first ranks of nodes of random size (at least one rank each), then the number of ranks. Half
// of the time nodes have equally many ranks, which some arms need.
std::vector<std::int32_t> some_nodes(std::int32_t p, std::mt19937& random, bool equal) {
  std::vector<std::int32_t> begins{0};
  const auto most = std::int32_t(1 + random() % std::uint32_t(p));
  std::int32_t each = most;
  while (p % each != 0) --each;
  while (begins.back() < p)
    begins.push_back(
        std::min(p, begins.back() + (equal ? each : 1 + int(random() % std::uint32_t(most)))));
  return begins;
}

// The schedules of all ranks on random nodes.
std::vector<schedule> build_somewhere(const arm& a, std::int32_t p, bool commutative,
                                      std::mt19937& random) {
  const bool equal = a.base->needs.equal_nodes || random() % 2 == 0;
  return build_all(a, p, commutative, 0, some_nodes(p, random, equal));
}

}  // namespace

constexpr std::int32_t most_ranks = test::sanitized ? 12 : 64;
constexpr std::int64_t least_steps = test::sanitized ? 100'000 : 10'000'000;

TEST_CASE("every arm is proved at every number of ranks up to 64") {
  std::int64_t steps = 0;
  std::size_t arms = 0, expected = 0;
  for (const collective op : all_collectives) {
    // The root matters only if the operands of a rooted reduction have an order (see checker.hpp),
    // and only because the result is passed on to it.
    const bool rooted_order = traits_of(op).rooted && traits_of(op).reduces;
    for (std::int32_t p = 1; p <= most_ranks; ++p) {
      std::vector<std::int32_t> roots{p / 2};
      if (rooted_order && p > 8) roots = {0, (p - 1) / 2, p - 1};
      if (rooted_order && p <= 8) {
        roots.resize(std::size_t(p));
        std::iota(roots.begin(), roots.end(), 0);
      }
      for (const verification& v : verify(op, p, roots)) {
        CAPTURE(name_of(op), p, v.algorithm, v.message);
        CHECK(v.ok);
        CHECK(v.memory_bytes <= max_schedule_bytes);
        steps += v.steps;
        ++arms;
      }
    }
  }
  for (const algorithm* a : all_algorithms)
    if (!a->is_native() && !knows_groups(a->needs)) ++expected;
  REQUIRE(arms >= expected);
  REQUIRE(steps > least_steps);
}

TEST_CASE("every arm that knows nodes or caches is proved with any numbers of ranks on them") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  std::set<std::pair<collective, std::string_view>> proved;
  std::size_t expected = 0;
  for (int k = 0; k < (test::sanitized ? 20 : 120); ++k) {
    // The first nodes allow every arm.
    const auto p = k == 0 ? 6 : std::int32_t(2 + random() % (k % 10 == 0 ? 47 : 15));
    const std::vector<std::int32_t> groups =
        k == 0 ? std::vector<std::int32_t>{0, 3, 6} : some_nodes(p, random, random() % 2 == 0);
    CAPTURE(p, groups);
    for (const rank_groups& given : {rank_groups{.nodes = groups}, {.caches = groups}})
      for (const collective op : all_collectives)
        for (const verification& v :
             verify(op, p, {{0, std::int32_t(random() % std::uint32_t(p)), p - 1}}, {}, given)) {
          CAPTURE(name_of(op), v.algorithm, v.parameters, v.message);
          CHECK(v.ok);
          proved.emplace(op, v.algorithm);
        }
  }
  for (const algorithm* a : all_algorithms) expected += knows_groups(a->needs) ? 1 : 0;
  CHECK(proved.size() == expected);
}

TEST_CASE("one rank has nothing to prove, and nonsense is refused") {
  const auto verify_broadcast = [](std::int32_t p, std::vector<std::int32_t> roots) {
    return verify(collective::broadcast, p, roots);
  };
  REQUIRE(verify_broadcast(1, {0}).empty());
  REQUIRE_THROWS_AS(verify_broadcast(0, {0}), error);
  REQUIRE_THROWS_AS(verify_broadcast(4, {0, 4}), error);
  REQUIRE_THROWS_AS(verify_broadcast(4, {-1}), error);
  REQUIRE_THROWS_AS(verify_broadcast(4, {}), error);
}

TEST_CASE("no schedule takes more than 64 KiB, whatever the number of ranks") {
  for (const collective op : all_collectives)
    for (const arm& a : arms_of(op)) {
      if (a.base->is_native()) continue;
      CAPTURE(name_of(op), name_of(a));
      std::size_t largest = 0;
      for (std::int32_t p : {4095, 4096}) {
        p = std::min(p, a.base->needs.max_ranks);
        if (!eligible(*a.base, {.num_ranks = p,
                                .units = std::int64_t{1} << 40,
                                .shared_memory = true,
                                .single_copy = true}))
          continue;
        for (std::int32_t v = 0; v < p; v += !test::sanitized && v < 64 ? 1 : 63)
          largest = std::max(largest,
                             a.base->build({.rank = v, .num_ranks = p}, a.values).memory_bytes());
      }
      CHECK(largest <= max_schedule_bytes);
    }
  for (const auto& [num_nodes, ranks] : {std::pair{64, 64}, {64, 16}, {4, 256}, {2048, 2}})
    for (const collective op : all_collectives)
      for (const arm& a : arms_of(op)) {
        const std::int32_t p = num_nodes * ranks;
        const node_facts facts = node_facts::blocks(p, ranks);
        if (a.base->needs.max_nodes == 0 || !eligible(*a.base, {.num_ranks = p,
                                                                .units = std::int64_t{1} << 40,
                                                                .shared_memory = true,
                                                                .nodes = facts}))
          continue;
        CAPTURE(name_of(op), name_of(a), num_nodes, ranks);
        // As even as possible, and uneven.
        for (const std::int32_t moved : {0, a.base->needs.equal_nodes ? 0 : 1}) {
          std::vector<std::int32_t> nodes;
          for (std::int32_t n = 0; n <= num_nodes; ++n)
            nodes.push_back(n * ranks + (n > 0 && n < num_nodes ? moved : 0));
          for (const std::int32_t v : {0, 1, ranks, p - 1})
            CHECK(a.base->build({.rank = v, .num_ranks = p, .nodes = nodes}, a.values)
                      .memory_bytes() <= max_schedule_bytes);
        }
      }
}

TEST_CASE("real values, random order: a broadcast gives every rank the root's") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  for (const arm& a : some_arms(collective::broadcast, true))
    for (const int p : {2, 3, 5, 8, 13}) {
      const message_size size{std::int64_t(random() % 40), 400};
      CAPTURE(name_of(a), p, size.units);
      std::vector<std::vector<double>> inputs(std::size_t(p),
                                              std::vector<double>(std::size_t(size.units)));
      for (auto& in : inputs)
        for (double& x : in) x = double(random());
      const auto outputs =
          run(build_somewhere(a, p, true, random), size, false, inputs, true, random);
      for (const auto& out : outputs) REQUIRE(out == inputs[0]);
    }
}

TEST_CASE("real values, random order: all_reduce keeps rank order for what does not commute") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  for (const arm& a : some_arms(collective::all_reduce, false))
    for (const int p : {2, 3, 5, 8, 13})
      for (const bool in_place : {false, true}) {
        const message_size size{std::int64_t(random() % 40), 400};
        CAPTURE(name_of(a), p, size.units, in_place);
        std::vector<std::vector<affine>> inputs(std::size_t(p),
                                                std::vector<affine>(std::size_t(size.units)));
        for (auto& in : inputs)
          for (affine& x : in) x = {random() % affine::prime, random() % affine::prime};
        std::vector<affine> expected = inputs[0];
        for (std::size_t v = 1; v < inputs.size(); ++v)
          for (std::size_t u = 0; u < expected.size(); ++u)
            expected[u] = expected[u] * inputs[v][u];
        const auto outputs =
            run(build_somewhere(a, p, false, random), size, in_place, inputs, false, random);
        for (const auto& out : outputs) REQUIRE(out == expected);
      }
}

TEST_CASE("real values, random order: all_reduce gives all ranks the same bits") {
  const unsigned seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 1e3);
  for (const arm& a : some_arms(collective::all_reduce, true))
    for (const int p : {2, 3, 5, 8, 13})
      for (const bool in_place : {false, true}) {
        const message_size size{std::int64_t(random() % 40), 400};
        CAPTURE(name_of(a), p, size.units, in_place);
        std::vector<std::vector<double>> inputs(std::size_t(p),
                                                std::vector<double>(std::size_t(size.units)));
        for (auto& in : inputs)
          for (double& x : in) x = normal(random);
        const auto outputs =
            run(build_somewhere(a, p, true, random), size, in_place, inputs, false, random);
        for (const auto& out : outputs) {
          const bool bitwise_equal = out.empty() || std::memcmp(out.data(), outputs[0].data(),
                                                                out.size() * sizeof(double)) == 0;
          REQUIRE(bitwise_equal);
          for (std::size_t u = 0; u < out.size(); ++u) {
            double sum = 0;
            for (const auto& in : inputs) sum += in[u];
            REQUIRE(out[u] == Approx(sum).margin(1e-6));
          }
        }
      }
}
