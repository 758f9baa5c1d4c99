// SPDX-License-Identifier: BSL-1.0
#include "models/simulator.hpp"

#include "collectives/registry.hpp"
#include "support/catch.hpp"

#include <map>
#include <random>

using namespace railpass;

namespace {

constexpr double alpha_s = 10e-6, beta_s_per_byte = 2e-9;

machine_model hockney_machine() {
  machine_model m{.same_node = hockney_link(alpha_s, beta_s_per_byte),
                  .across_nodes = hockney_link(alpha_s, beta_s_per_byte)};
  m.copy = m.reduce = {.alpha_s = 0, .s_per_byte = 0};
  return m;
}

machine_model rich_machine() {
  machine_model m;
  m.same_node = {.pieces = {{0, 0.3e-6, 0.1e-6, 0.2e-6, 0.2e-6, 0.1e-9},
                            {4096, 1e-6, 0.2e-6, 0.3e-6, 0.4e-6, 0.08e-9}},
                 .eager_limit_bytes = 4095};
  m.across_nodes = {
      .pieces = {{0, 12e-6, 1e-6, 2e-6, 1.5e-6, 1.2e-9}, {65536, 40e-6, 2e-6, 3e-6, 2.5e-6, 1e-9}},
      .eager_limit_bytes = 65535};
  m.across_nodes.pieces[0].send_overhead_s_per_byte = 0.1e-9;
  m.across_nodes.pieces[1].receive_overhead_s_per_byte = 0.2e-9;
  return m;
}

std::vector<schedule> schedules_of(const arm& a, std::int32_t p,
                                   const std::vector<std::int32_t>& nodes = {}) {
  std::vector<schedule> all;
  for (std::int32_t r = 0; r < p; ++r)
    all.push_back(
        a.base->build({.rank = r, .num_ranks = p, .commutative = true, .nodes = nodes}, a.values));
  return all;
}

double hockney_time(const std::vector<schedule>& all, std::int64_t bytes) {
  const machine_model m = hockney_machine();
  const auto nodes = node_layout::blocks(std::int32_t(all.size()), 1);
  simulator s;
  return s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {bytes, 1}}).time_s;
}

// The default arm of every algorithm and, where it has one, a segmented one.
std::vector<arm> some_arms() {
  std::vector<arm> arms;
  for (const algorithm* a : all_algorithms) {
    if (a->is_native()) continue;
    arms.push_back(default_arm(*a));
    for (int i = 0; i < a->num_parameters(); ++i)
      if (a->parameter_list[std::size_t(i)].in_bytes) {
        arms.push_back(default_arm(*a));
        arms.back().values[std::size_t(i)] = 1024;
      }
  }
  return arms;
}

template <class Check>
void for_each_case(const Check& check) {
  for (const arm& a : some_arms())
    for (const std::int32_t p : {2, 3, 4, 5, 8, 13, 16})
      for (std::int64_t bytes : {1, 1000, 5000, 150000}) {
        if (traits_of(a.base->op).blocks) bytes = (bytes + p - 1) / p * p;
        if (!eligible(*a.base, {.num_ranks = p, .units = bytes})) continue;
        CAPTURE(name_of(a.base->op), name_of(a), p, bytes);
        check(a, p, bytes);
      }
}

}  // namespace

TEST_CASE("one message between two idle ranks takes the one-way time of its link") {
  const machine_model m = rich_machine();
  simulator s;
  for (const std::int64_t bytes : {1, 100, 4095, 4096, 65535, 65536, 1 << 20})
    for (const std::int32_t per_node : {1, 2}) {
      CAPTURE(bytes, per_node);
      builder sender({.rank = 0, .num_ranks = 2}), receiver({.rank = 1, .num_ranks = 2});
      sender.send(buffer::output, {}, 1);
      receiver.receive(buffer::output, {}, 0);
      const schedule both[] = {sender.finish(), receiver.finish()};
      const auto nodes = node_layout::blocks(2, per_node);
      const simulation& r =
          s.run({.machine = m, .nodes = nodes, .schedules = both, .size = {bytes, 1}});
      const link_model& link = per_node == 1 ? m.across_nodes : m.same_node;
      CHECK(r.time_s == Approx(link.one_way_s(double(bytes))).epsilon(1e-12));
      CHECK(r.messages == 1);
    }
}

TEST_CASE("a stream of messages leaves at the pace of busy_s") {
  const machine_model m = rich_machine();
  const std::int64_t bytes = 2000;
  const int count = 50;
  builder sender({.rank = 0, .num_ranks = 2}), receiver({.rank = 1, .num_ranks = 2});
  sender.send(buffer::output, {}, 1, {}, {.rounds = count});
  receiver.receive(buffer::output, {}, 0, {}, {.rounds = count});
  const schedule both[] = {sender.finish(), receiver.finish()};
  const auto nodes = node_layout::blocks(2, 1);
  simulator s;
  const double t =
      s.run({.machine = m, .nodes = nodes, .schedules = both, .size = {bytes, 1}}).time_s;
  CHECK(t == Approx(m.across_nodes.one_way_s(bytes) + (count - 1) * m.across_nodes.busy_s(bytes)));
}

TEST_CASE("a burst passes at its own speed, a stream at the network's") {
  machine_model m = hockney_machine();
  m.across_nodes.pieces[0].latency_s_per_byte = -0.75 * beta_s_per_byte;
  const std::int64_t bytes = 10000;
  for (const int count : {1, 20}) {
    builder sender({.rank = 0, .num_ranks = 2}), receiver({.rank = 1, .num_ranks = 2});
    sender.send(buffer::output, {}, 1, {}, {.rounds = count});
    receiver.receive(buffer::output, {}, 0, {}, {.rounds = count});
    const schedule both[] = {sender.finish(), receiver.finish()};
    const auto nodes = node_layout::blocks(2, 1);
    simulator s;
    const double t =
        s.run({.machine = m, .nodes = nodes, .schedules = both, .size = {bytes, 1}}).time_s;
    CHECK(t == Approx(alpha_s + 0.25 * double(bytes) * beta_s_per_byte +
                      (count - 1) * (alpha_s + double(bytes) * beta_s_per_byte)));
  }
}

TEST_CASE("with Hockney links the textbook formulas come out") {
  const std::int64_t bytes = 64000;
  const double message_s = alpha_s + double(bytes) * beta_s_per_byte;

  for (const std::int32_t p : {2, 5, 16}) {
    CAPTURE(p);
    std::vector<schedule> linear, pipeline;
    const std::int64_t segment = 1000;
    for (std::int32_t r = 0; r < p; ++r) {
      builder l({.rank = r, .num_ranks = p}), c({.rank = r, .num_ranks = p}, segment);
      if (r == 0)
        for (std::int32_t child = 1; child < p; ++child) l.send(buffer::output, {}, child);
      else
        l.receive(buffer::output, {}, 0);
      linear.push_back(l.finish());
      const step_id arrived =
          r == 0 ? no_step : c.receive(buffer::output, {}, r - 1, {}, by_segments);
      if (r + 1 < p) c.send(buffer::output, {}, r + 1, {each(arrived)}, by_segments);
      pipeline.push_back(c.finish());
    }
    CHECK(hockney_time(linear, bytes) == Approx((p - 1) * message_s));
    CHECK(hockney_time(pipeline, bytes) ==
          Approx((p - 2 + 64) * (alpha_s + double(segment) * beta_s_per_byte)));
  }
  const arm binomial = parse_arm(collective::broadcast, "binomial");
  CHECK(hockney_time(schedules_of(binomial, 2), bytes) == Approx(message_s));
  CHECK(hockney_time(schedules_of(binomial, 8), bytes) == Approx(3 * message_s));
  CHECK(hockney_time(schedules_of(binomial, 16), bytes) == Approx(4 * message_s));
  CHECK(hockney_time(schedules_of(binomial, 13), bytes) == Approx(4 * message_s));
  const arm ring = parse_arm(collective::all_reduce, "ring");
  CHECK(hockney_time(schedules_of(ring, 8), bytes) ==
        Approx(14 * (alpha_s + double(bytes) / 8 * beta_s_per_byte)));
}

TEST_CASE("every message of every algorithm is delivered once, whole, in time and in order") {
  const machine_model m = rich_machine();
  simulator s;
  for_each_case([&](const arm& a, std::int32_t p, std::int64_t bytes) {
    const auto all = schedules_of(a, p);
    const auto nodes = node_layout::blocks(p, 1 + p / 4);
    const simulation& r = s.run({.machine = m,
                                 .nodes = nodes,
                                 .schedules = all,
                                 .size = {bytes, 1},
                                 .root = p / 2,
                                 .record = true});

    std::int64_t expected_messages = 0, expected_bytes = 0;
    for (const schedule& one : all)
      for (const step& what : one.steps) {
        if (what.kind != step_kind::send) continue;
        const std::int64_t units = message_size{bytes, 1}.segment_units(one.segment_bytes);
        for (std::int32_t round = 0; round < what.rounds; ++round)
          for (std::int64_t g = 0; g < segments_per_round(what, units, {bytes, 1}); ++g) {
            const auto size = instance_extent(what, round, g, units, {bytes, 1}).size();
            expected_messages += size > 0;
            expected_bytes += size;
          }
      }
    CHECK(r.messages == expected_messages);

    struct ends {
      const timeline_event* sent = nullptr;
      const timeline_event* received = nullptr;
    };
    std::vector<ends> messages(std::size_t(r.messages));
    std::int64_t sent_bytes = 0;
    for (const timeline_event& e : r.events) {
      REQUIRE(e.begin_s <= e.end_s);
      REQUIRE(e.end_s <= r.finish_s[std::size_t(e.rank)]);
      if (e.message < 0) continue;
      auto& [sent, received] = messages[std::size_t(e.message)];
      const timeline_event*& mine = e.kind == step_kind::send ? sent : received;
      REQUIRE(mine == nullptr);
      mine = &e;
      if (e.kind == step_kind::send) sent_bytes += e.bytes;
    }
    CHECK(sent_bytes == expected_bytes);
    for (const auto& [sent, received] : messages) {
      REQUIRE(sent);
      REQUIRE(received);
      REQUIRE(sent->bytes == received->bytes);
      REQUIRE(sent->rank == received->peer);
      REQUIRE(sent->peer == received->rank);
      const bool local = nodes.node_of_rank[std::size_t(sent->rank)] ==
                         nodes.node_of_rank[std::size_t(sent->peer)];
      const link_model& link = local ? m.same_node : m.across_nodes;
      const double fastest =
          link.one_way_s(double(sent->bytes)) - link.sending_s(double(sent->bytes));
      REQUIRE(received->end_s >=
              sent->end_s - link.piece(double(sent->bytes)).gap_s_per_byte * double(sent->bytes) +
                  fastest - 1e-12);
    }
    for (const double t : r.finish_s) CHECK(t <= r.time_s);
  });
}

TEST_CASE("nothing starts before what it waits for has ended") {
  const machine_model m = rich_machine();
  simulator s;
  for_each_case([&](const arm& a, std::int32_t p, std::int64_t bytes) {
    const auto all = schedules_of(a, p);
    const auto nodes = node_layout::blocks(p, 1);
    const simulation& r =
        s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {bytes, 1}, .record = true});
    // (rank, step) -> end of each instance, those without bytes at 0.
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<double>> ends;
    const auto segments_of = [&](const timeline_event& e, std::int32_t index) {
      const schedule& one = all[std::size_t(e.rank)];
      return segments_per_round(one.steps[std::size_t(index)],
                                message_size{bytes, 1}.segment_units(one.segment_bytes),
                                message_size{bytes, 1});
    };
    for (const timeline_event& e : r.events) {
      auto& list = ends[{e.rank, e.step}];
      const std::int64_t segments = segments_of(e, e.step);
      list.resize(
          std::size_t(segments * all[std::size_t(e.rank)].steps[std::size_t(e.step)].rounds));
      list[std::size_t(e.round * segments + e.segment)] = e.end_s;
    }
    for (const timeline_event& e : r.events) {
      if (e.kind == step_kind::receive) continue;  // drawn from the arrival, which may be earlier
      const schedule& one = all[std::size_t(e.rank)];
      for (const dependency& d : one.dependencies_of(one.steps[std::size_t(e.step)])) {
        if (d.lag == dependency::posted || d.lag == dependency::in_turn) continue;
        const auto it = ends.find({e.rank, d.step});
        if (it == ends.end()) continue;
        const std::int64_t awaited = instances_awaited(
            d, e.round, e.segment, segments_of(e, e.step), one.steps[std::size_t(d.step)].rounds,
            std::int64_t(it->second.size()));
        for (std::int64_t i = 0; i < awaited; ++i)
          REQUIRE(e.begin_s >= it->second[std::size_t(i)] - 1e-15);
      }
    }
  });
}

TEST_CASE("no rank that needs the whole message is done before the wire could carry it") {
  const machine_model m = hockney_machine();
  simulator s;
  for_each_case([&](const arm& a, std::int32_t p, std::int64_t bytes) {
    const auto all = schedules_of(a, p);
    const auto nodes = node_layout::blocks(p, 1);
    const simulation& r =
        s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {bytes, 1}});
    for (std::int32_t rank = 0; rank < p; ++rank)
      if (describe(a.base->op).what == promise::reduce_to_all ||
          (describe(a.base->op).what == promise::root_to_all && rank != 0))
        CHECK(r.finish_s[std::size_t(rank)] >= alpha_s + double(bytes) * beta_s_per_byte - 1e-12);
  });
}

TEST_CASE("a NIC sends one message at a time, whichever of its node's ranks they come from") {
  const machine_model m = hockney_machine();
  simulator s;
  for_each_case([&](const arm& a, std::int32_t p, std::int64_t bytes) {
    const auto all = schedules_of(a, p);
    const auto nodes = node_layout::blocks(p, 2);
    const simulation& r =
        s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {bytes, 1}, .record = true});
    std::map<std::int32_t, std::vector<std::pair<double, double>>> busy;
    for (const timeline_event& e : r.events) {
      const std::int32_t node = nodes.node_of_rank[std::size_t(e.rank)];
      if (e.kind == step_kind::send && node != nodes.node_of_rank[std::size_t(e.peer)])
        busy[node].emplace_back(e.end_s - double(e.bytes) * beta_s_per_byte, e.end_s + alpha_s);
    }
    for (auto& [node, list] : busy) {
      std::sort(list.begin(), list.end());
      for (std::size_t i = 1; i < list.size(); ++i)
        REQUIRE(list[i].first >= list[i - 1].second - 1e-12);
    }
  });
}

TEST_CASE("unsegmented trees take longer for more bytes") {
  for (const std::int32_t p : {2, 3, 7, 16}) {
    double before = 0;
    for (std::int64_t bytes = 1; bytes < 4 << 20; bytes = bytes * 3 + 1) {
      const double t =
          hockney_time(schedules_of(parse_arm(collective::broadcast, "binomial"), p), bytes);
      CHECK(t > before);
      before = t;
    }
  }
}

TEST_CASE("equal runs give equal bits, and the root only renames ranks of a uniform layout") {
  const machine_model m = rich_machine();
  for_each_case([&](const arm& a, std::int32_t p, std::int64_t bytes) {
    const auto all = schedules_of(a, p);
    const auto nodes = node_layout::blocks(p, 1);
    simulator fresh, used;
    const auto run = [&](simulator& s, std::int32_t root) {
      return s.run({.machine = m,
                    .nodes = nodes,
                    .schedules = all,
                    .size = {bytes, 1},
                    .root = root,
                    .record = true});
    };
    const simulation first = run(fresh, 0);
    run(used, p - 1);
    const simulation second = run(used, 0), moved = run(used, p - 1);
    CHECK(first.finish_s == second.finish_s);
    CHECK(first.events.size() == second.events.size());
    for (std::int32_t r = 0; r < p; ++r)
      CHECK(moved.finish_s[std::size_t(wrap(r - 1, p))] == first.finish_s[std::size_t(r)]);
  });
}

TEST_CASE("schedules end with windows of one, eager and rendezvous alike") {
  machine_model m = rich_machine();
  m.same_node.eager_limit_bytes = m.across_nodes.eager_limit_bytes = 0;
  simulator s;
  for_each_case([&](const arm& a, std::int32_t p, std::int64_t bytes) {
    if (a.base->num_parameters() == 0 && a.values[0] != 0) return;
    const auto all = schedules_of(a, p);
    const auto nodes = node_layout::blocks(p, 1);
    const double t =
        s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {bytes, 1}}).time_s;
    CHECK(t > 0);
  });
}

TEST_CASE("a large message waits for a receiver that is busy, a small one does not") {
  machine_model m = rich_machine();
  m.copy = {.alpha_s = 5e-3, .s_per_byte = 0};
  simulator s;
  for (const std::int64_t bytes : {1000, 100000}) {
    builder sender({.rank = 0, .num_ranks = 2}), receiver({.rank = 1, .num_ranks = 2});
    sender.send(buffer::output, {}, 1);
    const step_id late = receiver.copy(buffer::input, buffer::output, {});
    receiver.receive(buffer::scratch0, {}, 0, {whole(late)});
    const schedule both[] = {sender.finish(), receiver.finish()};
    const auto nodes = node_layout::blocks(2, 1);
    const simulation& r =
        s.run({.machine = m, .nodes = nodes, .schedules = both, .size = {bytes, 1}});
    const link_model& link = m.across_nodes;
    const double without_send = link.one_way_s(double(bytes)) - link.sending_s(double(bytes));
    if (bytes == 1000) {
      CHECK(r.finish_s[1] == Approx(5e-3 + link.receiving_s(double(bytes))));
      CHECK(r.finish_s[0] < 1e-3);
    } else {
      CHECK(r.finish_s[1] == Approx(5e-3 + without_send));
      CHECK(r.finish_s[0] > 5e-3);
    }
  }
}

TEST_CASE("two rails carry twice as much") {
  machine_model m = hockney_machine();
  const std::int32_t p = 9;
  builder root({.rank = 0, .num_ranks = p});
  for (std::int32_t r = 1; r < p; ++r) root.send(buffer::output, {}, r);
  std::vector<schedule> all{root.finish()};
  for (std::int32_t r = 1; r < p; ++r) {
    builder leaf({.rank = r, .num_ranks = p});
    leaf.receive(buffer::output, {}, 0);
    all.push_back(leaf.finish());
  }
  const auto nodes = node_layout::blocks(p, 1);
  simulator s;
  const simulation_setup setup{
      .machine = m, .nodes = nodes, .schedules = all, .size = {1 << 20, 1}};
  const double one = s.run(setup).time_s;
  m.rails_per_node = 2;
  CHECK(s.run(setup).time_s == Approx(one / 2));
}

TEST_CASE("the first of several large messages to different ranks arrives first") {
  const machine_model m = hockney_machine();
  std::vector<schedule> all;
  builder root({.rank = 0, .num_ranks = 3});
  root.send(buffer::output, {}, 1);
  root.send(buffer::output, {}, 2);
  all.push_back(root.finish());
  for (std::int32_t r = 1; r < 3; ++r) {
    builder leaf({.rank = r, .num_ranks = 3});
    leaf.receive(buffer::output, {}, 0);
    all.push_back(leaf.finish());
  }
  const auto nodes = node_layout::blocks(3, 1);
  simulator s;
  const double bytes = 1 << 20, message_s = alpha_s + bytes * beta_s_per_byte;
  const simulation& r =
      s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {1 << 20, 1}});
  CHECK(r.finish_s[1] == Approx(message_s));
  CHECK(r.finish_s[2] == Approx(2 * message_s));
}

TEST_CASE("an in-place call copies nothing") {
  machine_model m = hockney_machine();
  m.copy = {.alpha_s = 1, .s_per_byte = 0};
  builder alone({.rank = 0, .num_ranks = 1});
  alone.copy(buffer::input, buffer::output, {});
  const schedule one[] = {alone.finish()};
  const auto nodes = node_layout::blocks(1, 1);
  simulator s;
  simulation_setup setup{.machine = m, .nodes = nodes, .schedules = one, .size = {8, 1}};
  CHECK(s.run(setup).time_s == 1);
  setup.in_place = true;
  CHECK(s.run(setup).time_s == 0);
}

TEST_CASE("schedules that cannot end and arguments that do not fit are refused") {
  const machine_model m = hockney_machine();
  std::vector<schedule> stuck;
  for (std::int32_t r = 0; r < 2; ++r) {
    builder b({.rank = r, .num_ranks = 2});
    const step_id first = b.receive(buffer::output, {}, 1 - r);
    b.send(buffer::output, {}, 1 - r, {whole(first)});
    stuck.push_back(b.finish());
  }
  auto nodes = node_layout::blocks(2, 1);
  simulator s;
  simulation_setup setup{.machine = m, .nodes = nodes, .schedules = stuck, .size = {8, 1}};
  CHECK_THROWS_AS(s.run(setup), error);
  nodes.node_of_rank.push_back(2);
  CHECK_THROWS_WITH(s.run(setup), "simulator: the node layout has 3 ranks, expected 2");
  nodes.node_of_rank.pop_back();
  setup.root = 2;
  CHECK_THROWS_AS(s.run(setup), error);
  setup.root = 0;
  setup.window = 0;
  CHECK_THROWS_AS(s.run(setup), error);
}

TEST_CASE("in shared memory a publisher waits for nobody, and who fetches for what is published") {
  const machine_model m = rich_machine();
  const std::int64_t bytes = 3 * cell_bytes;
  const arm flat = parse_arm(collective::broadcast, "shared_flat");
  const std::vector<schedule> all = schedules_of(flat, 3);
  const auto nodes = node_layout::blocks(3, 3);
  simulator s;
  const simulation& r = s.run({.machine = m,
                               .nodes = nodes,
                               .schedules = all,
                               .size = {bytes, 1},
                               .root = 1,
                               .record = true});
  const double publish_s = m.publish_s(cell_bytes), fetch_s = m.fetch_s(cell_bytes);
  CHECK(r.finish_s[1] == Approx(3 * publish_s));
  CHECK(r.finish_s[0] == Approx(publish_s + m.line_s() + 3 * fetch_s));
  CHECK(r.finish_s[2] == Approx(publish_s + m.line_s() + 3 * fetch_s));
  CHECK(r.messages == 0);
  REQUIRE(r.events.size() == 9);
  for (const timeline_event& e : r.events) {
    CHECK(e.kind == (e.rank == 1 ? step_kind::publish : step_kind::fetch));
    CHECK(e.peer == 1);
    CHECK(e.bytes == cell_bytes);
    if (e.kind == step_kind::fetch) CHECK(e.begin_s >= double(e.segment + 1) * publish_s * 0.9999);
  }
}

TEST_CASE("copies in one process' memory follow one another, whoever makes them") {
  const machine_model m = rich_machine();
  constexpr std::int64_t block = 1 << 16;
  const auto nodes = node_layout::blocks(4, 4);
  for (const char* name : {"single_copy", "single_copy+giver_writes=1"}) {
    CAPTURE(name);
    const std::vector<schedule> all = schedules_of(parse_arm(collective::scatter, name), 4);
    simulator s;
    const double played_s =
        s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {4 * block, 1}}).time_s;
    CHECK(played_s > 3 * m.single_copy_s(block));
    CHECK(played_s < 4 * m.single_copy_s(block));
  }
}

TEST_CASE("schedules that look where nobody publishes do not end") {
  const machine_model m = rich_machine();
  const arm flat = parse_arm(collective::broadcast, "shared_flat");
  std::vector<schedule> all = schedules_of(flat, 2);
  all[0].steps[0].place = 1;
  const auto nodes = node_layout::blocks(2, 2);
  simulator s;
  REQUIRE_THROWS_AS(s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {8, 1}}), error);
}

TEST_CASE("closed forms of collectives in shared memory are about what is simulated") {
  const machine_model m = rich_machine();
  simulator s;
  for (const algorithm* a : all_algorithms) {
    if (!a->needs.shared_memory) continue;
    for (const int per_node : {2, 3, 8})
      for (std::int64_t bytes : {8, 4096, 1 << 20}) {
        const bool on_nodes = a->needs.max_nodes > 0, under_caches = a->needs.several_caches;
        const int p = (knows_groups(a->needs) ? 4 : 1) * per_node;
        CAPTURE(name_of(a->op), a->name, per_node, bytes);
        const bool barrier = describe(a->op).what == promise::all_arrive;
        if (traits_of(a->op).blocks) bytes *= p;
        const message_size size = barrier ? message_size{p, 1} : message_size{bytes / 8, 8};
        const arm chosen = default_arm(*a);
        const std::vector<std::int32_t> begins{0, per_node, 2 * per_node, 3 * per_node, p};
        const std::vector<schedule> all = schedules_of(
            chosen, p, on_nodes || under_caches ? begins : std::vector<std::int32_t>{});
        const auto nodes =
            node_layout::blocks(p, under_caches ? p : per_node, under_caches ? per_node : 0);
        const double played_s =
            s.run({.machine = m, .nodes = nodes, .schedules = all, .size = size}).time_s;
        const double closed_s = a->cost_s({.machine = m,
                                           .num_ranks = p,
                                           .ranks_per_node = under_caches ? p : per_node,
                                           .ranks_per_cache = under_caches ? per_node : 0,
                                           .bytes = double(size.bytes())},
                                          chosen.values);
        CHECK(closed_s > 0.5 * played_s);
        CHECK(closed_s < 2 * played_s);
      }
  }
}

TEST_CASE("what is shown is seen earlier under the same cache, if caches are known") {
  machine_model m = rich_machine();
  m.shared = {.seen_s = 2e-7, .near_seen_s = 4e-8, .measured = true};
  const std::int64_t bytes = 64;
  const std::vector<schedule> all =
      schedules_of(parse_arm(collective::broadcast, "shared_flat"), 4);
  simulator s;
  const auto finish = [&](const node_layout& where) {
    return s.run({.machine = m, .nodes = where, .schedules = all, .size = {bytes, 1}}).finish_s;
  };
  const double near_s =
      m.publish_s(bytes) + m.line_s(reach::cache) + m.fetch_s(bytes, reach::cache);
  const double far_s = m.publish_s(bytes) + m.line_s() + m.fetch_s(bytes);
  CHECK(far_s - near_s == Approx(m.shared.seen_s - m.shared.near_seen_s));
  const std::vector<double> together = finish(node_layout::blocks(4, 4));
  const std::vector<double> apart = finish(node_layout::blocks(4, 4, 2));
  for (const std::size_t r : {1, 2, 3}) {
    CHECK(together[r] == Approx(far_s));
    CHECK(apart[r] == Approx(r == 1 ? near_s : far_s));
  }
  // Where nobody has measured it, near is nearer.
  m.shared.near_seen_s = 0;
  CHECK(m.line_s(reach::cache) < m.line_s());
  node_layout wrong = node_layout::blocks(4, 4, 2);
  wrong.cache_of_rank.pop_back();
  CHECK_THROWS_AS(finish(wrong), error);
}

TEST_CASE("a rank begins a phase when it has ended the one before") {
  const machine_model m = hockney_machine();
  const auto nodes = node_layout::blocks(3, 1);
  const auto phases_of_rank = [&](std::int32_t r) {
    const shape of{.rank = r, .num_ranks = 3};
    // 0 sends to 1, and then 1 to 2, which has nothing to do before.
    builder first(of), second(of);
    if (r == 0) first.send(buffer::output, {}, 1);
    if (r == 1) first.receive(buffer::output, {}, 0);
    if (r == 1) second.send(buffer::output, {}, 2);
    if (r == 2) second.receive(buffer::output, {}, 1);
    schedule s = builder(of).finish();
    s.phases = {first.finish(), second.finish()};
    return s;
  };
  const std::vector<schedule> all{phases_of_rank(0), phases_of_rank(1), phases_of_rank(2)};
  simulator s;
  const simulation& r =
      s.run({.machine = m, .nodes = nodes, .schedules = all, .size = {1000, 1}, .record = true});
  const double one_s = alpha_s + 1000 * beta_s_per_byte;
  CHECK(r.time_s == Approx(2 * one_s));
  CHECK(r.finish_s[2] == Approx(2 * one_s));
  CHECK(r.messages == 2);
  REQUIRE(r.events.size() == 4);
  for (const timeline_event& e : r.events)
    CHECK(e.step == (e.rank == 1 && e.kind == step_kind::send));
}
