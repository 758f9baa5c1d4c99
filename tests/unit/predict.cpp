// SPDX-License-Identifier: BSL-1.0
#include "railpass/predict/predict.hpp"

#include "railpass/select/belief/prior.hpp"
#include "railpass/select/lockstep/merge_costs.hpp"
#include "support/catch.hpp"

using namespace railpass;

namespace {

profile cluster_profile() {
  profile p;
  p.machine.across_nodes.pieces = {{0, 20e-6, 1e-6, 2e-6, 1.5e-6, 2e-9}};
  p.machine.same_node.pieces = {{0, 0.5e-6, 0.1e-6, 0.2e-6, 0.2e-6, 0.2e-9}};
  return p;
}

const prediction_query eight{.op = collective::broadcast, .num_ranks = 8, .bytes = 65536};

double time_of(const profile& p, prediction_query q, const arm& a, std::int64_t bytes) {
  q.bytes = bytes;
  for (const arm_prediction& x : predict_arms(p, q))
    if (x.what == a) return x.seconds.value();
  return std::numeric_limits<double>::infinity();  // not eligible
}

}  // namespace

TEST_CASE("every eligible arm is predicted, the fastest first") {
  const auto all = predict_arms(cluster_profile(), eight);
  // Each is on a node of its own.
  const std::vector<arm> arms = arms_of(collective::broadcast);
  CHECK(std::ptrdiff_t(all.size()) == std::ranges::count_if(arms, [](const arm& a) {
          return !a.base->needs.shared_memory && a.base->needs.max_nodes == 0;
        }));
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].seconds) CHECK(all[i - 1].seconds.value() <= *all[i].seconds);
  CHECK(all.back().what.base->is_native());
  CHECK_FALSE(all.back().seconds);

  prediction_query ordered{.op = collective::all_reduce, .num_ranks = 8, .bytes = 1 << 20};
  const std::size_t commutative = predict_arms(cluster_profile(), ordered).size();
  ordered.commutative = false;
  const auto rest = predict_arms(cluster_profile(), ordered);
  CHECK(rest.size() < commutative);
  for (const arm_prediction& a : rest) CHECK_FALSE(a.what.base->needs.commutative);
}

TEST_CASE("ranks of one node may share memory, of which no profile knows the speed") {
  prediction_query q = eight;
  q.ranks_per_node = 8;
  const auto all = predict_arms(cluster_profile(), q);
  const auto flat = std::ranges::find_if(
      all, [](const arm_prediction& x) { return x.what.base->needs.shared_memory; });
  REQUIRE(flat != all.end());
  CHECK(flat->seconds.value() > 0);
  CHECK(flat->spread >= unsampled_spread);
  q.unit_bytes = cell_bytes + 1;  // which no cell has room for
  CHECK(std::ranges::none_of(predict_arms(cluster_profile(), q), [](const arm_prediction& x) {
    return x.what.base->needs.shared_memory;
  }));
}

TEST_CASE("corrections and measured native times enter") {
  profile p = cluster_profile();
  const arm binomial = parse_arm(collective::broadcast, "binomial");
  const double before = time_of(p, eight, binomial, 65536);
  p.corrections.push_back({.collective = "broadcast", .algorithm = "binomial", .factor = 2});
  CHECK(time_of(p, eight, binomial, 65536) == Approx(2 * before));
  p.measured.push_back({"broadcast", "native", 8, 1, 65536, 1e-9});
  CHECK(predict_arms(p, eight).front().what.base->is_native());
}

TEST_CASE("native is known at measured sizes, between them, and near them") {
  profile p = cluster_profile();
  const auto measure = [&](std::int64_t bytes, double seconds) {
    p.measured.push_back({"broadcast", "native", 8, 1, bytes, seconds});
  };
  const auto native_s = [&](std::int64_t bytes) {
    prediction_query q = eight;
    q.bytes = bytes;
    for (const arm_prediction& a : predict_arms(p, q))
      if (a.what.base->is_native()) return a.seconds;
    return std::optional<double>();
  };
  CHECK_FALSE(native_s(64));
  measure(8, 1e-4);
  measure(64, 3e-4);
  CHECK(native_s(8) == Approx(1e-4));
  CHECK(native_s(24).value_or(0) > 1e-4);
  CHECK(native_s(24).value_or(1) < 3e-4);
  CHECK(native_s(128).value_or(0) > 3e-4);
  CHECK(native_s(4).value_or(1) < 1e-4);
  // The native time at 64 bytes says nothing about 64 KiB. Native counts as unmeasured there.
  CHECK_FALSE(native_s(65536));
  CHECK_FALSE(native_s(1));
  measure(1 << 20, 1e-1);
  CHECK(native_s(65536));
}

TEST_CASE("a correction is trusted less the further away the sizes are that it comes from") {
  profile p = cluster_profile();
  const arm binomial = parse_arm(collective::broadcast, "binomial");
  const auto features = [&](double bytes, int num_ranks) {
    return select::misfit_features_of(
        binomial, {.machine = p.machine, .num_ranks = num_ranks, .bytes = bytes});
  };
  p.corrections.push_back({.collective = "broadcast",
                           .algorithm = "binomial",
                           .factor = 2,
                           .points = {{features(4096, 8), 1}, {features(32768, 8), 1}}});
  const auto spread = [&](double bytes, int num_ranks = 8) {
    return select::prior_of(
               binomial, 0,
               {.machine = p.machine, .knowledge = &p, .num_ranks = num_ranks, .bytes = bytes})
        .spread;
  };
  CHECK(spread(4096) == Approx(0.08));
  CHECK(spread(32768) == spread(4096));
  CHECK(spread(16384) > spread(32768));
  // Four times as large: the more the longer a message takes.
  CHECK(spread(1024) > spread(4096));
  CHECK(spread(64) > spread(1024));
  CHECK(spread(1024) < spread(131072));
  CHECK(spread(32768 * 64) > spread(131072));
  CHECK(spread(131072) > spread(16384));
  CHECK(spread(32768, 16) > spread(16384));  // twice the ranks
  CHECK(spread(16384, 1 << 30) > 0.26);      // only the factor is known
  CHECK(spread(16384, 1 << 30) < 0.3);
  // Beyond all sizes that were measured, more: one that is larger still makes a difference.
  const double beyond = spread(131072);
  p.corrections[0].points.push_back({features(1 << 26, 8), 1});
  CHECK(spread(131072) < beyond - 0.05);
  p.corrections[0].points.pop_back();
  // A damaged profile predicts no nonsense.
  p.corrections[0].points[0].weight = 1e6;
  CHECK(time_of(p, eight, binomial, 4096) < 1);
}

TEST_CASE("a prediction is doubted the more the further away it is, without end") {
  profile p = cluster_profile();
  const arm binomial = parse_arm(collective::broadcast, "binomial");
  const auto spread = [&](int num_ranks, std::int64_t bytes) {
    for (const arm_prediction& x :
         predict_arms(p, {.op = collective::broadcast, .num_ranks = num_ranks, .bytes = bytes}))
      if (x.what == binomial) return x.spread;
    return 0.0;
  };
  // Links are sampled between two ranks.
  CHECK(most_measured_ranks(p, collective::broadcast) == 2);
  CHECK(spread(2, 4096) == Approx(0.35));
  CHECK(spread(1024, 4096) > spread(8, 4096) + 0.2);
  p.corrections.push_back(
      {.collective = "broadcast",
       .algorithm = "binomial",
       .points = {{select::misfit_features_of(
                       binomial, {.machine = p.machine, .num_ranks = 8, .bytes = 4096}),
                   1}}});
  CHECK(most_measured_ranks(p, collective::broadcast) == Approx(8));
  CHECK(spread(8, 4096) == Approx(0.08));
  CHECK(spread(4, 4096) < 0.2);
  CHECK(spread(1024, 4096) > 0.6);
  CHECK(spread(1 << 20, 4096) > spread(1024, 4096) + 0.2);
  CHECK(spread(8, std::int64_t{1} << 32) > spread(8, std::int64_t{1} << 24) + 0.1);
  CHECK(spread(8, std::int64_t{1} << 24) > 0.6);
}

TEST_CASE("an arm is predicted between its own times at the sizes around") {
  profile p = cluster_profile();
  const arm binomial = parse_arm(collective::broadcast, "binomial");
  const auto measured = [&](double bytes, double seconds, double noise = 0) {
    return algorithm_correction::point{
        .features = select::misfit_features_of(
            binomial, {.machine = p.machine, .num_ranks = 8, .bytes = bytes}),
        .noise = noise,
        .seconds = seconds};
  };
  const double model_s = time_of(p, eight, binomial, 8192);
  p.corrections.push_back({.collective = "broadcast", .algorithm = "binomial"});
  const auto predicted_s = [&](const char* name, int num_ranks,
                               std::vector<algorithm_correction::point> points) {
    p.corrections[0].points = std::move(points);
    const select::prior_query q{
        .machine = p.machine, .knowledge = &p, .num_ranks = num_ranks, .bytes = 8192};
    return std::exp(select::prior_of(parse_arm(collective::broadcast, name), 0, q).log_seconds);
  };
  const double slow_s = 3 * model_s, slower_s = 4 * model_s;
  const auto nearly = [](double seconds) { return Approx(seconds).epsilon(0.07); };
  CHECK(predicted_s("binomial", 8, {}) == Approx(model_s));
  CHECK(predicted_s("binomial", 8, {measured(4096, slow_s), measured(16384, slower_s)}) ==
        nearly(slow_s));
  CHECK(predicted_s("binomial", 8, {measured(4096, model_s / 4), measured(16384, model_s / 3)}) ==
        nearly(model_s / 3));
  CHECK(predicted_s("binomial", 8, {measured(4096, model_s / 3), measured(16384, slow_s)}) ==
        Approx(model_s));
  CHECK(predicted_s("binomial", 8, {measured(4096, slow_s), measured(1024, slower_s)}) ==
        nearly(slower_s));
  // As far as they are certain.
  CHECK(predicted_s("binomial", 8, {measured(4096, slow_s, 0.2)}) ==
        nearly(slow_s * std::exp(-0.4)));
  // Times of other ranks and other arms say nothing about this.
  CHECK(predicted_s("binomial", 16, {measured(4096, 100 * slow_s)}) < slow_s);
  p.corrections[0].algorithm = "knomial";
  const arm knomial = parse_arm(collective::broadcast, "knomial+radix=3");
  algorithm_correction::point of_radix_3 = measured(4096, 100 * slow_s);
  of_radix_3.features =
      select::misfit_features_of(knomial, {.machine = p.machine, .num_ranks = 8, .bytes = 4096});
  CHECK(predicted_s("knomial+radix=3", 8, {of_radix_3}) == nearly(100 * slow_s));
  CHECK(predicted_s("knomial+radix=8", 8, {of_radix_3}) < slow_s);
}

TEST_CASE("arms of an algorithm are the closer the more alike their parameters") {
  const machine_model machine = cluster_profile().machine;
  const auto features = [&](const char* name, double bytes) {
    return select::misfit_features_of(parse_arm(collective::broadcast, name),
                                      {.machine = machine, .num_ranks = 8, .bytes = bytes});
  };
  const auto alike = [&](const char* a, const char* b, double bytes) {
    return select::misfit_covariance(features(a, bytes), features(b, bytes));
  };
  CHECK(alike("knomial+radix=3", "knomial+radix=3", 65536) >
        alike("knomial+radix=3", "knomial+radix=4", 65536));
  CHECK(alike("knomial+radix=3", "knomial+radix=4", 65536) >
        alike("knomial+radix=3", "knomial+radix=8", 65536));
  CHECK(alike("pipeline+segment_bytes=8KiB", "pipeline+segment_bytes=4KiB", 65536) >
        alike("pipeline+segment_bytes=8KiB", "pipeline+segment_bytes=1KiB", 65536));
  // Arms with equally many segments are alike. Both messages are one segment.
  CHECK(alike("pipeline", "pipeline+segment_bytes=64KiB", 4096) ==
        alike("pipeline", "pipeline", 4096));
  // A message of 16 units has 16 blocks at most.
  CHECK(features("circulant+blocks=128", 16) == features("circulant+blocks=16", 16));
  CHECK(features("circulant+blocks=128", 64) != features("circulant+blocks=16", 64));
}

TEST_CASE("the priors of all arms are those of each") {
  profile p = cluster_profile();
  for (const algorithm* const a : all_algorithms)
    if (a->cost_s)
      p.corrections.push_back({.collective = std::string(name_of(a->op)),
                               .algorithm = std::string(a->name),
                               .factor = 1.5,
                               .points = {{{5, 3, 0, 1, 13}, 0.5}, {{7, 3, 0, 0, 24}, -0.3}}});
  for (std::size_t op = 0; op < num_collectives; ++op)
    for (const double bytes : {64.0, 8192.0, 12000.0, 4e6}) {
      CAPTURE(name_of(collective(op)), bytes);
      const std::vector<arm> arms = arms_of(collective(op));
      const select::prior_query query{.machine = p.machine,
                                      .knowledge = &p,
                                      .key = {.op = collective(op)},
                                      .num_ranks = 6,
                                      .bytes = bytes};
      const auto is_eligible = [](const arm& a) { return eligible(*a.base, {6, 4096, true}); };
      const auto all = select::priors_of(arms, query, is_eligible);
      auto next = all.begin();
      for (int i = 0; i < int(arms.size()); ++i) {
        if (!is_eligible(arms[std::size_t(i)])) continue;
        REQUIRE(next != all.end());
        CHECK(*next++ == select::prior_of(arms[std::size_t(i)], i, query));
      }
      CHECK(next == all.end());
    }
}

TEST_CASE("what a merge is expected to cost: its messages one after the other, or looked at") {
  const machine_model m = cluster_profile().machine;
  const auto two = select::expected_merge_costs(m, 2, 1);
  CHECK(two.at_once_s == Approx(2 * m.across_nodes.one_way_s(256)));
  CHECK(two.spread_s == Approx(2 * 3e-6));
  // On each of two levels of 16 ranks two more children wait for the first one's message.
  CHECK(select::expected_merge_costs(m, 16, 1).at_once_s == Approx(2 * two.at_once_s + 4 * 3e-6));
  CHECK(select::expected_merge_costs(m, 17, 1).at_once_s == Approx(3 * two.at_once_s + 4 * 3e-6));
  CHECK(select::expected_merge_costs(m, 17, 1).spread_s == Approx(10 * 3e-6));
  CHECK(select::expected_merge_costs(m, 16, 16).at_once_s < two.at_once_s);  // on one host
  CHECK(select::expected_merge_costs(m, 1, 1).spread_s == 0);
}

TEST_CASE(
    "asking all ranks takes a latency and three messages for each factor of four of the ranks") {
  const machine_model m = cluster_profile().machine;
  constexpr double words_bytes = 2 * sizeof(std::int64_t);
  const link_model& link = m.across_nodes;
  // Further messages of a round follow the first one as fast as the link or the processor allows.
  const double next_s = std::max(link.busy_s(words_bytes),
                                 link.sending_s(words_bytes) + link.receiving_s(words_bytes));
  struct asked {
    int num_ranks, rounds, messages;
  };
  for (const auto& [p, rounds, messages] :
       {asked{2, 1, 1}, {3, 1, 2}, {4, 1, 3}, {16, 2, 6}, {17, 3, 7}}) {
    const double asking_s = rounds * link.exchange_s(words_bytes) + (messages - rounds) * next_s;
    CHECK(select::expected_merge_costs(m, p, 1).ask_s == Approx(asking_s));
    constexpr double bytes = 1 << 20;
    const cost_query q{.machine = m, .num_ranks = p, .bytes = bytes};
    const auto cost_s = [&](collective op) {
      return find_algorithm(op, "bruck")->cost_s(q, parameters{2});
    };
    CHECK(cost_s(collective::all_to_allv) ==
          Approx(cost_s(collective::all_to_all) + asking_s + 2 * p * m.copy.time_s(bytes / p)));
  }
  CHECK(select::expected_merge_costs(m, 1, 1).ask_s == 0);
}

TEST_CASE(
    "between two crossovers no arm is better than the one named, and at each the new one is") {
  const profile p = cluster_profile();
  for (const collective op : {collective::broadcast, collective::all_reduce})
    for (const int ranks : {2, 3, 8, 64, 100}) {
      const prediction_query q{.op = op, .num_ranks = ranks, .ranks_per_node = 1 + ranks / 20};
      const std::int64_t from = 1, to = 8 << 20;
      const double gain = 0.01;
      const auto changes = crossovers(p, q, from, to, gain);
      CAPTURE(name_of(op), ranks);
      REQUIRE_FALSE(changes.empty());
      CHECK(changes.front().from_bytes == from);
      for (std::size_t i = 1; i < changes.size(); ++i) {
        CAPTURE(i, changes[i].from_bytes, name_of(changes[i].best));
        const std::int64_t at = changes[i].from_bytes;
        CHECK(at > changes[i - 1].from_bytes);
        CHECK(time_of(p, q, changes[i].best, at) <= time_of(p, q, changes[i - 1].best, at));
        CHECK(time_of(p, q, changes[i].best, at - 1) >
              time_of(p, q, changes[i - 1].best, at - 1) * (1 - gain));
      }
      // Brute force over a coarse set of sizes.
      for (std::int64_t bytes = from; bytes <= to; bytes = bytes * 2) {
        std::size_t i = 0;
        while (i + 1 < changes.size() && changes[i + 1].from_bytes <= bytes) ++i;
        prediction_query here = q;
        here.bytes = bytes;
        const double best = predict_arms(p, here).front().seconds.value();
        CAPTURE(bytes, name_of(changes[i].best));
        CHECK(time_of(p, q, changes[i].best, bytes) <= best * (1 + gain) * 1.05);
      }
    }
}

TEST_CASE("short broadcasts want a tree, long ones a pipeline") {
  const auto changes = crossovers(cluster_profile(), eight, 1, 64 << 20);
  CHECK(changes.size() >= 2);
  const std::string_view last = changes.back().best.base->name;
  CHECK((last == "pipeline" || last == "circulant"));  // both are pipelines
  CHECK(changes.front().best.base->name != last);
}

TEST_CASE("sizes that make no sense are refused") {
  CHECK_THROWS_AS(crossovers(cluster_profile(), eight, 0, 8), error);
  CHECK_THROWS_AS(crossovers(cluster_profile(), eight, 9, 8), error);
}

TEST_CASE("an arm is simulated, the native one cannot be") {
  simulator s;
  const profile p = cluster_profile();
  const auto nodes = node_layout::blocks(8, 1);
  const arm ring = parse_arm(collective::all_reduce, "ring");
  const simulation& r = simulate_arm(s, p.machine, ring, nodes, {1 << 20, 1}, 0, true);
  CHECK(r.time_s > 0);
  CHECK_FALSE(r.events.empty());
  CHECK_THROWS_WITH(
      simulate_arm(s, p.machine, parse_arm(collective::broadcast, "native"), nodes, {8, 1}),
      "predict: native of broadcast has no schedule and cannot be simulated");
}

TEST_CASE("ranks are played in the order of nodes, wherever they are and whoever is the root") {
  const machine_model m = select::generic_machine();
  constexpr int num_nodes = 3, each = 4, p = num_nodes * each;
  const node_layout blocks = node_layout::blocks(p, each);
  node_layout by_turns = blocks;
  for (int r = 0; r < p; ++r) by_turns.node_of_rank[std::size_t(r)] = r % num_nodes;
  simulator s;
  int played = 0;
  for (const collective op : {collective::broadcast, collective::reduce, collective::all_reduce,
                              collective::all_gather, collective::gather, collective::all_to_all})
    for (const arm_prediction& x : predict_arms({.machine = m}, {.op = op,
                                                                .num_ranks = p,
                                                                .ranks_per_node = each,
                                                                .bytes = 96 * 1024,
                                                                .unit_bytes = 8})) {
      if (x.what.base->is_native()) continue;
      CAPTURE(name_of(op), name_of(x.what));
      const message_size size{12 * 1024, 8};
      const double seconds = simulate_arm(s, m, x.what, blocks, size).time_s;
      CHECK(simulate_arm(s, m, x.what, by_turns, size).time_s == seconds);
      const int root = traits_of(op).rooted ? 7 : 0;
      CHECK(simulate_arm(s, m, x.what, by_turns, size, root).time_s == seconds);
      played += x.what.base->needs.max_nodes > 0;
    }
  CHECK(played > 0);
  // Caches in the same way: on one node, by turns and with the root in the middle.
  node_layout under_caches = node_layout::blocks(p, p, each), mixed = under_caches;
  for (std::int32_t r = 0; r < p; ++r) mixed.cache_of_rank[std::size_t(r)] = r % (p / each);
  std::size_t by_caches = 0;
  for (const collective op : all_collectives)
    for (const arm_prediction& x : predict_arms({.machine = m}, {.op = op,
                                                                .num_ranks = p,
                                                                .ranks_per_node = p,
                                                                .ranks_per_cache = each,
                                                                .bytes = 96 * 1024,
                                                                .unit_bytes = 8})) {
      if (!x.what.base->needs.several_caches) continue;
      CAPTURE(name_of(op), name_of(x.what));
      const message_size size{12 * 1024, 8};
      const double seconds = simulate_arm(s, m, x.what, under_caches, size).time_s;
      const int root = traits_of(op).rooted ? 7 : 0;
      CHECK(simulate_arm(s, m, x.what, mixed, size).time_s == seconds);
      CHECK(simulate_arm(s, m, x.what, mixed, size, root).time_s == seconds);
      ++by_caches;
    }
  CHECK(by_caches > 0);
  const arm linear = parse_arm(collective::scan, "linear");  // whose ranks keep their order
  const double in_blocks_s = simulate_arm(s, m, linear, blocks, {1024, 8}).time_s;
  CHECK(simulate_arm(s, m, linear, by_turns, {1024, 8}).time_s > in_blocks_s);
  CHECK_THROWS_AS(simulate_arm(s, m, linear, blocks, {1024, 8}, p), error);
}
