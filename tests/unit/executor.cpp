// SPDX-License-Identifier: BSL-1.0
//
// Every algorithm, run by as many executors as there are ranks over a network that delays messages
// and ends them in random order, against what the collective should give.
#include "lib/exec/executor.hpp"

#include "collectives/registry.hpp"
#include "lib/exec/schedule_cache.hpp"
#include "support/catch.hpp"
#include "support/fake_network.hpp"
#include "support/sanitized.hpp"

#include <memory>
#include <random>

namespace {

using namespace railpass;
using namespace railpass::internal;
using test::fake_network;

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
affine add(affine left, affine right) {
  return {std::uint32_t((std::uint64_t{left.a} + right.a) % prime),
          std::uint32_t((std::uint64_t{left.b} + right.b) % prime)};
}

// The same value between gaps, as a type with alignment holes has them.
struct with_gaps {
  std::uint32_t gap0 = 0xeeeeeeee;
  affine value;
  std::uint32_t gap1 = 0xdddddddd;
};

template <class Element>
affine& value_of(Element& e) {
  if constexpr (std::is_same_v<Element, affine>)
    return e;
  else
    return e.value;
}
template <class Element>
affine value_of(const Element& e) {
  return value_of(const_cast<Element&>(e));
}

template <class Element, affine (*combine)(affine, affine)>
int reduce_elements(void*, const std::byte* left, std::byte* right, std::int64_t units) {
  const auto* l = reinterpret_cast<const Element*>(left);
  auto* r = reinterpret_cast<Element*>(right);
  for (std::int64_t i = 0; i < units; ++i) value_of(r[i]) = combine(value_of(l[i]), value_of(r[i]));
  return 0;
}
int pack_elements(void*, const std::byte* memory, std::int64_t units, std::byte* packed) {
  const auto* m = reinterpret_cast<const with_gaps*>(memory);
  for (std::int64_t i = 0; i < units; ++i)
    std::memcpy(packed + i * std::int64_t(sizeof(affine)), &m[i].value, sizeof(affine));
  return 0;
}
int unpack_elements(void*, const std::byte* packed, std::int64_t units, std::byte* memory) {
  auto* m = reinterpret_cast<with_gaps*>(memory);
  for (std::int64_t i = 0; i < units; ++i)
    std::memcpy(&m[i].value, packed + i * std::int64_t(sizeof(affine)), sizeof(affine));
  return 0;
}

struct run {
  arm a;
  int num_ranks = 1;
  int root = 0;
  std::int64_t units = 0;
  bool commutative = true;
  bool in_place = false;
  std::int64_t eager_bytes = 0;
  windows w{};
  std::uint64_t seed = 0;
};

std::ostream& operator<<(std::ostream& out, const run& r) {
  return out << name_of(r.a.base->op) << ':' << name_of(r.a) << " p " << r.num_ranks << " root "
             << r.root << " units " << r.units << (r.commutative ? "" : " non-commutative")
             << (r.in_place ? " in place" : "") << " eager " << r.eager_bytes << " windows "
             << r.w.sends << '/' << r.w.receives << " seed " << r.seed;
}

// The executors of all ranks, with their memory.
template <class Element>
struct world {
  struct member {
    std::unique_ptr<fake_network::rail> rail;
    std::unique_ptr<executor<fake_network::rail>> exec;
    std::vector<Element> input, output;
    std::shared_ptr<const schedule> plan;
    int call = -1;
  };
  fake_network network;
  std::vector<member> members;
  schedule_cache cache;

  explicit world(const run& r)
      : network(r.num_ranks, r.eager_bytes, r.seed), members(std::size_t(r.num_ranks)) {
    for (int i = 0; i < r.num_ranks; ++i) {
      member& m = members[std::size_t(i)];
      m.rail = std::make_unique<fake_network::rail>(network, i);
      m.exec = std::make_unique<executor<fake_network::rail>>(*m.rail, r.w);
    }
  }

  binding bind(const run& r, member& m) {
    binding b;
    b.output = reinterpret_cast<std::byte*>(m.output.data());
    b.input = r.in_place ? b.output : reinterpret_cast<const std::byte*>(m.input.data());
    b.root = r.root;
    if (r.a.base->op == collective::broadcast) {
      b.size = {r.units * std::int64_t(sizeof(affine)), 1};
      return b;
    }
    b.size = {r.units, sizeof(affine)};
    b.hooks.reduce =
        r.commutative ? reduce_elements<Element, add> : reduce_elements<Element, compose>;
    if constexpr (!std::is_same_v<Element, affine>) {
      b.hooks.pack = pack_elements;
      b.hooks.unpack = unpack_elements;
      b.layout = {sizeof(with_gaps), offsetof(with_gaps, value), sizeof(affine)};
    }
    return b;
  }

  void start(const run& r) {
    for (int i = 0; i < r.num_ranks; ++i) {
      member& m = members[std::size_t(i)];
      m.plan = cache.find_or_build(*r.a.base, r.a.values,
                                   {.rank = wrap(i - r.root, r.num_ranks),
                                    .num_ranks = r.num_ranks,
                                    .commutative = r.commutative});
      m.call = m.exec->start(*m.plan, bind(r, m));
    }
  }
  // Lets random ranks advance until all are done. False: they never will be.
  bool finish(std::mt19937_64& random) {
    std::vector<member*> unfinished;
    for (member& m : members) unfinished.push_back(&m);
    int quiet = 0;
    while (!unfinished.empty()) {
      const auto i = std::uniform_int_distribution<std::size_t>(0, unfinished.size() - 1)(random);
      member& m = *unfinished[i];
      quiet = m.exec->progress() ? 0 : quiet + 1;
      if (m.exec->done(m.call)) {
        if (m.exec->finish(m.call) != 0) return false;
        unfinished.erase(unfinished.begin() + std::ptrdiff_t(i));
      }
      if (quiet > 200 + 50 * int(members.size())) return false;
    }
    return true;
  }
};

template <class Element>
void check_call(const run& r, world<Element>& w, std::mt19937_64& random) {
  const auto any = [&] {
    return affine{std::uint32_t(random() % (prime - 1) + 1), std::uint32_t(random() % prime)};
  };
  std::vector<affine> expected(std::size_t(r.units));
  for (int i = 0; i < r.num_ranks; ++i) {
    auto& m = w.members[std::size_t(i)];
    m.input.resize(expected.size());
    m.output.resize(expected.size());
    auto& mine = r.in_place ? m.output : m.input;
    for (std::size_t u = 0; u < expected.size(); ++u) {
      value_of(mine[u]) = any();
      const affine x = value_of(mine[u]);
      if (r.a.base->op == collective::broadcast) {
        if (i == r.root) expected[u] = x;
      } else {
        expected[u] = i == 0 ? x : r.commutative ? add(expected[u], x) : compose(expected[u], x);
      }
    }
  }
  w.start(r);
  REQUIRE(w.finish(random));
  REQUIRE(w.network.unmatched() == 0);
  for (const auto& m : w.members) {
    for (std::size_t u = 0; u < expected.size(); ++u) {
      if (value_of(m.output[u]) != expected[u]) FAIL("unit " << u << " is wrong");
      if constexpr (!std::is_same_v<Element, affine>)
        if (m.output[u].gap0 != 0xeeeeeeee || m.output[u].gap1 != 0xdddddddd)
          FAIL("the gap at unit " << u << " was overwritten");
    }
    // A step without a message in flight may exceed the window by one.
    const auto steps = [&](step_kind kind) {
      return int(std::ranges::count(m.plan->steps, kind, &step::kind));
    };
    REQUIRE(m.rail->most_sends() <= r.w.sends + steps(step_kind::send));
    REQUIRE(m.rail->most_receives() <= r.w.receives + steps(step_kind::receive));
  }
}

// The call, the same call with other data in other memory, and one of another size.
template <class Element>
void check(run r) {
  INFO(r);
  std::mt19937_64 random(r.seed);
  world<Element> w(r);
  check_call(r, w, random);
  for (auto& m : w.members) {
    m.input = std::vector<Element>();
    m.output = std::vector<Element>();
  }
  check_call(r, w, random);
  ++r.units;
  check_call(r, w, random);
}

// The arms worth running here: segments that cut small messages in many pieces, and all values of
// the other parameters.
std::vector<arm> short_segments(const algorithm& a) {
  std::vector<arm> arms{default_arm(a)};
  for (int i = 0; i < a.num_parameters(); ++i) {
    const parameter& p = a.parameter_list[std::size_t(i)];
    std::vector<std::int64_t> values(p.values.begin(), p.values.begin() + p.num_values);
    if (p.name == "segment_bytes") values = {p.values[0], 8, 64, 200};
    std::vector<arm> product;
    for (const arm& base : arms)
      for (const std::int64_t v : values) {
        product.push_back(base);
        product.back().values[std::size_t(i)] = v;
      }
    arms = std::move(product);
  }
  return arms;
}

}  // namespace

TEST_CASE("every algorithm gives the right result over a network that delays and reorders") {
  std::mt19937_64 random(20261121);
  const auto below = [&](std::int64_t n) { return std::int64_t(random() % std::uint64_t(n)); };
  for (const algorithm* a : all_algorithms) {
    if (a->is_native() || (a->op != collective::broadcast && a->op != collective::all_reduce))
      continue;
    for (const arm& chosen : short_segments(*a))
      for (int p = a->needs.min_ranks; p <= 16; ++p)
        for (int repetition = 0; repetition < (test::sanitized ? 2 : 10); ++repetition) {
          run r{.a = chosen, .num_ranks = p, .seed = random()};
          const bool reduces = a->op != collective::broadcast;
          r.root = reduces ? 0 : int(below(p));
          r.units = below(3) == 0 ? below(4) : below(200);
          r.commutative = !reduces || a->needs.commutative || below(2) == 0;
          r.in_place = !reduces || below(2) == 0;
          r.eager_bytes = below(2) == 0 ? 0 : below(400);
          if (below(2) == 0) r.w = {.sends = 1 + int(below(8)), .receives = 1 + int(below(8))};
          if (!eligible(*a, {p, reduces ? r.units : r.units * 8, r.commutative})) continue;
          if (reduces && below(2) == 0)
            check<with_gaps>(r);
          else
            check<affine>(r);
        }
  }
}

TEST_CASE("more instances than a mask has bits and than the windows have slots") {
  const algorithm* binomial = find_algorithm(collective::broadcast, "binomial");
  REQUIRE(binomial != nullptr);
  for (const int window : {1, 3, 64, 256}) {
    run r{.a = default_arm(*binomial), .num_ranks = 6, .root = 2, .units = 1000};
    r.in_place = true;
    r.a.values[0] = 8;
    r.w = {window, window};
    r.seed = std::uint64_t(window);
    check<affine>(r);
  }
}

TEST_CASE("large messages go one at a time, and to one rank after the other") {
  for (const std::int64_t bytes : {large_message_bytes - 8, large_message_bytes}) {
    const bool large = bytes >= large_message_bytes;
    // Nobody receives, so a send in flight stays there.
    const auto posted_by = [&](const schedule& s, std::int64_t all_bytes) {
      fake_network network(3, 0, 1);
      fake_network::rail rail(network, 0);
      executor<fake_network::rail> exec(rail);
      std::vector<std::byte> memory(static_cast<std::size_t>(all_bytes));
      exec.start(s, {.input = memory.data(), .output = memory.data(), .size = {all_bytes, 1}});
      return rail.most_sends();
    };
    builder segments({.num_ranks = 3}, bytes);
    segments.send(buffer::output, {}, 1, {}, by_segments);
    CHECK(posted_by(segments.finish(), 5 * bytes) == (large ? 1 : 5));
    builder children({.num_ranks = 3});
    children.send(buffer::output, {}, 1);
    children.send(buffer::output, {}, 2);
    CHECK(posted_by(children.finish(), bytes) == (large ? 1 : 2));
    builder loop({.num_ranks = 3});
    loop.send(buffer::output, {}, 1, {}, {.rounds = 2, .peer_stride = 1});
    CHECK(posted_by(loop.finish(), bytes) == 2);
  }
}

TEST_CASE("calls in progress together do not disturb one another") {
  const algorithm* binomial = find_algorithm(collective::broadcast, "binomial");
  const algorithm* ring = find_algorithm(collective::all_reduce, "ring");
  REQUIRE(binomial != nullptr);
  REQUIRE(ring != nullptr);
  constexpr int p = 5;
  run first{.a = default_arm(*binomial), .num_ranks = p, .root = 3, .units = 100, .seed = 7};
  first.a.values[0] = 16;
  const run second{.a = default_arm(*ring), .num_ranks = p, .units = 100, .seed = 8};
  world<affine> w(first);
  std::vector<affine> sum(100, affine{0, 0});
  std::vector<std::vector<affine>> broadcast_to(p, std::vector<affine>(100));
  std::vector<int> first_calls;
  for (std::uint32_t i = 0; i < p; ++i) {
    auto& m = w.members[i];
    for (std::uint32_t u = 0; u < 100; ++u) {
      m.input.push_back({i * 100 + u, u});
      sum[u] = add(sum[u], m.input.back());
    }
    m.output.resize(100);
    if (i == 3) broadcast_to[i] = m.input;
  }
  std::vector<std::shared_ptr<const schedule>> plans;
  for (int i = 0; i < p; ++i) {
    binding b;
    b.output = reinterpret_cast<std::byte*>(broadcast_to[std::size_t(i)].data());
    b.size = {800, 1};
    b.root = 3;
    plans.push_back(w.cache.find_or_build(*binomial, first.a.values, {wrap(i - 3, p), p, true}));
    first_calls.push_back(w.members[std::size_t(i)].exec->start(*plans.back(), b));
  }
  w.start(second);
  std::mt19937_64 random(9);
  REQUIRE(w.finish(random));
  for (int turn = 0; turn < 100000; ++turn) {
    auto& m = w.members[random() % p];
    m.exec->progress();
  }
  for (std::size_t i = 0; i < p; ++i) {
    REQUIRE(w.members[i].exec->done(first_calls[i]));
    REQUIRE(w.members[i].exec->finish(first_calls[i]) == 0);
    REQUIRE(w.members[i].output == sum);
    REQUIRE(broadcast_to[i] == w.members[3].input);
  }
}

TEST_CASE("a failing rail fails the call with its code") {
  const algorithm* binomial = find_algorithm(collective::broadcast, "binomial");
  REQUIRE(binomial != nullptr);
  run r{.a = default_arm(*binomial), .num_ranks = 4, .units = 100};
  r.a.values[0] = 8;
  world<affine> w(r);
  for (auto& m : w.members) m.output.resize(100);
  w.members[0].rail->fail_after(10);
  w.start(r);
  auto& root = w.members[0];
  REQUIRE(root.exec->wait(root.call) == 17);
  REQUIRE(root.rail->pending() == 0);
}

TEST_CASE("a failing reduction ends its call, and nobody ends with what it did not make") {
  const algorithm* ring = find_algorithm(collective::all_reduce, "ring");
  REQUIRE(ring != nullptr);
  const run r{.a = default_arm(*ring), .num_ranks = 3, .units = 30};
  world<affine> w(r);
  for (int i = 0; i < 3; ++i) {
    auto& m = w.members[std::size_t(i)];
    m.input.resize(30);
    m.output.resize(30);
    m.plan = w.cache.find_or_build(*ring, r.a.values, {i, 3, true});
    binding b = w.bind(r, m);
    if (i == 1)
      b.hooks.reduce = [](void*, const std::byte*, std::byte*, std::int64_t) { return 5; };
    m.call = m.exec->start(*m.plan, b);
  }
  for (int turn = 0; turn < 10000; ++turn) w.members[std::size_t(turn % 3)].exec->progress();
  REQUIRE(w.members[1].exec->done(w.members[1].call));
  REQUIRE(w.members[1].exec->finish(w.members[1].call) == 5);
  for (const std::size_t i : {0u, 2u}) {
    auto& m = w.members[i];
    REQUIRE_FALSE(m.exec->done(m.call));
    // Until it is told.
    wait_watch watch;
    watch.look = [](void*) { return 9; };
    REQUIRE(m.exec->wait(m.call, watch) == 9);
    REQUIRE(m.rail->pending() == 0);
  }
}

namespace {
double fake_now_s = 0;
double fake_clock_s() { return fake_now_s += 10; }
}  // namespace

TEST_CASE("a call that takes too long says who is waited for") {
  // Rank 1 of 3 in a binomial tree waits for rank 0, which sends only after the report.
  const algorithm* binomial = find_algorithm(collective::broadcast, "binomial");
  REQUIRE(binomial != nullptr);
  run r{.a = default_arm(*binomial), .num_ranks = 3, .root = 2, .units = 10};
  world<affine> w(r);
  for (auto& m : w.members) m.output.resize(10);
  struct record {
    world<affine>* w;
    const run* r;
    int reports = 0;
    std::vector<awaited_peer> peers;
  } seen{&w, &r, 0, {}};
  for (int i = 0; i < 2; ++i) {
    auto& m = w.members[std::size_t(i)];
    m.plan = w.cache.find_or_build(*binomial, r.a.values, {wrap(i - 2, 3), 3, true});
    m.call = m.exec->start(*m.plan, w.bind(r, m));
  }
  wait_watch watch{.clock = fake_clock_s, .after_s = 60};
  watch.user_data = &seen;
  watch.report = [](void* user, std::span<const awaited_peer> peers, double) {
    auto& s = *static_cast<record*>(user);
    ++s.reports;
    s.peers.assign(peers.begin(), peers.end());
    auto& root = s.w->members[2];
    root.plan = s.w->cache.find_or_build(*s.r->a.base, s.r->a.values, {0, 3, true});
    root.call = root.exec->start(*root.plan, s.w->bind(*s.r, root));
  };
  auto& waiting = w.members[0];
  REQUIRE(waiting.exec->wait(waiting.call, watch) == 0);
  REQUIRE(seen.reports == 1);
  REQUIRE(seen.peers.size() == 1);
  REQUIRE(seen.peers[0].rank == 2);
  REQUIRE(seen.peers[0].receives == 1);
  REQUIRE(seen.peers[0].sends == 0);
}

TEST_CASE("patience is out after its time, and whenever that has doubled") {
  patience left(1, 100);
  CHECK(!left.is_out(100.9));
  CHECK(left.is_out(101));
  CHECK(!left.is_out(101.9));
  CHECK(left.is_out(109));  // late, and then not for each time that has passed
  CHECK(!left.is_out(115));
  CHECK(left.is_out(116));
  CHECK(!patience(0, 100).is_out(1e9));
}

namespace {
// Its message ends at a late poll.
struct slow_rail {
  static constexpr int large_messages_at_once = 1;
  int polls_left = 100;
  int gave_way = 0;
  rail_token awaited = 0;
  int under_way = 0;
  void reserve(std::size_t) {}
  post_result post_send(std::int32_t, std::int32_t, const std::byte*, std::int64_t, rail_token t) {
    awaited = t;
    under_way = 1;
    return post_result::pending;
  }
  post_result post_receive(std::int32_t, std::int32_t, std::byte*, std::int64_t, rail_token) {
    return post_result::failed;
  }
  int poll(std::span<rail_token> completed) {
    if (--polls_left > 0) return 0;
    completed[0] = awaited;
    under_way = 0;
    return 1;
  }
  int pending() const { return under_way; }
  void give_way() { ++gave_way; }
  int error_code() const { return 1; }
  void abandon() { under_way = 0; }
};
}  // namespace

TEST_CASE("while nothing comes the rail gives way, but not at once, and is looked at again") {
  builder steps({.rank = 0, .num_ranks = 2});
  steps.send(buffer::output, {}, 1);
  const schedule s = steps.finish();
  slow_rail rail;
  executor<slow_rail> exec(rail, {}, 64);
  std::array<std::byte, 8> data{};
  binding b;
  b.output = data.data();
  b.size = {8, 1};
  REQUIRE(exec.run(s, b) == 0);
  REQUIRE(rail.polls_left == 0);
  REQUIRE(rail.gave_way == 99 - 63);
}

TEST_CASE("a schedule that waits for nothing under way is an error, not a hang") {
  schedule s;
  s.num_ranks = 2;
  s.steps.push_back({.kind = step_kind::copy, .from = buffer::input});
  s.steps[0].num_dependencies = 1;
  s.steps[0].num_successors = 1;
  s.dependencies.push_back({0, dependency::all});
  s.successors.push_back(0);
  fake_network network(2, 0, 1);
  fake_network::rail rail(network, 0);
  executor<fake_network::rail> exec(rail);
  std::byte in[8]{}, out[8]{};
  binding b;
  b.input = in;
  b.output = out;
  b.size = {8, 1};
  REQUIRE_THROWS_AS(exec.run(s, b), error);
}

TEST_CASE("the cache keeps what was used last and tells arms and shapes apart") {
  const algorithm* binomial = find_algorithm(collective::broadcast, "binomial");
  REQUIRE(binomial != nullptr);
  schedule_cache cache(3);
  const auto get = [&](int rank, std::int64_t segment) {
    return cache.find_or_build(*binomial, {segment}, {.rank = rank, .num_ranks = 8});
  };
  const auto a = get(0, 0), b = get(1, 0), c = get(0, 1024);
  REQUIRE(a->rank == 0);
  REQUIRE(b->rank == 1);
  REQUIRE(c->segment_bytes == 1024);
  REQUIRE(get(0, 0) == a);
  get(2, 0);  // b goes
  REQUIRE(cache.size() == 3);
  REQUIRE(get(0, 0) == a);
  REQUIRE(get(0, 1024) == c);
  REQUIRE(get(1, 0) != b);
  REQUIRE_THROWS_AS(schedule_cache(0), error);
}

TEST_CASE("only schedules that the library numbers are known again, each by a number of its own") {
  const algorithm* binomial = find_algorithm(collective::broadcast, "binomial");
  REQUIRE(binomial != nullptr);
  const shape s{.rank = 1, .num_ranks = 8};
  CHECK(binomial->build(s, {0}).serial == 0);
  schedule_cache one, other;
  const std::uint64_t first = one.find_or_build(*binomial, {0}, s)->serial,
                      second = other.find_or_build(*binomial, {0}, s)->serial;
  CHECK(first != 0);
  CHECK(second != 0);
  CHECK(first != second);
  CHECK(one.find_or_build(*binomial, {0}, s)->serial == first);
}

TEST_CASE("equal nodes share a schedule whatever the root, others have one for each root's node") {
  const algorithm* on_nodes = find_algorithm(collective::broadcast, "nodes_postal_tree");
  REQUIRE(on_nodes != nullptr);
  schedule_cache cache;
  const auto get = [&](std::int32_t num_ranks, std::int32_t each, std::int32_t node) {
    return cache.find_or_build(
        *on_nodes, on_nodes->default_values(),
        {.rank = 5,
         .num_ranks = num_ranks,
         .nodes = group_begins::blocks(num_ranks, each).beginning_with(node)});
  };
  const auto equal = get(12, 3, 0), smaller_last = get(11, 3, 0);
  CHECK(get(12, 3, 2) == equal);
  CHECK(get(11, 3, 0) == smaller_last);
  CHECK(get(11, 3, 3) != smaller_last);
  CHECK(get(12, 4, 0) != equal);
}

TEST_CASE("scratch memory is counted, and too much of it is recognised") {
  builder steps({.rank = 1, .num_ranks = 4});
  const step_id sent = steps.send(buffer::input, {}, 0);
  const step_id came = steps.receive(buffer::scratch0, {}, 2, {whole(sent)});
  steps.reduce(buffer::scratch0, buffer::output, {}, {whole(came)});
  const schedule s = steps.finish();
  using exec = executor<fake_network::rail>;
  binding b;
  b.size = {1000, 8};
  REQUIRE(exec::scratch_bytes(s, b) == 8000);
  b.size = {0, 8};
  REQUIRE(exec::scratch_bytes(s, b) == 0);
  b.size = {std::int64_t{1} << 62, 8};
  REQUIRE(exec::scratch_bytes(s, b) == std::numeric_limits<std::int64_t>::max());
  // With gaps: the scratch buffer in the user's layout, packed twins of it and of the input.
  b.size = {1000, 8};
  b.hooks.pack = pack_elements;
  b.hooks.unpack = unpack_elements;
  b.layout = {sizeof(with_gaps), offsetof(with_gaps, value), sizeof(affine)};
  REQUIRE(exec::scratch_bytes(s, b) == (999 * 16 + 8 + 63) / 64 * 64 + 2 * 8000);
}
