// SPDX-License-Identifier: BSL-1.0
#include "railpass/knowledge/accuracy.hpp"
#include "railpass/knowledge/analysis.hpp"
#include "railpass/knowledge/contradiction.hpp"
#include "railpass/knowledge/groups.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

using namespace railpass;
using namespace railpass::knowledge;

namespace {

using times = std::vector<std::optional<timing>>;

constexpr std::optional<timing> missing{};

std::optional<timing> takes(double seconds, double error = 0.01) { return timing{seconds, error}; }

instance sized(double bytes, times arms) { return {{bytes}, std::move(arms)}; }

/// Problems of one or two coordinates, some of them equal, with arms of unrelated times; some arms
/// did not run.
std::vector<instance> random_problems(select::random_stream& r) {
  const int problems = 1 + r.below(9), arms = 1 + r.below(5), coordinates = 1 + r.below(2);
  std::vector<instance> known;
  for (int i = 0; i < problems; ++i) {
    instance p;
    for (int c = 0; c < coordinates; ++c) p.coordinates.push_back(double(1 << r.below(7)));
    for (int a = 0; a < arms; ++a)
      p.arms.push_back(r.below(5) == 0 ? missing : takes(1 + 0.05 * r.below(8)));
    if (std::ranges::none_of(p.arms, [](const auto& t) { return t.has_value(); }))
      p.arms.front() = takes(1);
    known.push_back(p);
  }
  return known;
}

analysis_options random_options(select::random_stream& r) {
  return {.p_max = 0.05 * r.below(5),
          .by = r.below(2) == 0 ? metric::lengths : metric::logarithms,
          .similar = r.below(2) == 0 ? similarity::others_serve_it : similarity::it_serves_others};
}

double best_s(const instance& p) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& t : p.arms)
    if (t) best = std::min(best, t->seconds);
  return best;
}

/// The definitions of the paper, computed without shortcuts.
struct oracle {
  const std::vector<instance>& known;
  analysis_options o;

  int winner(std::size_t i) const {
    for (std::size_t a = 0;; ++a)
      if (known[i].arms[a] && known[i].arms[a]->seconds == best_s(known[i])) return int(a);
  }
  bool good(std::size_t i, int arm) const {
    const auto& t = known[i].arms[std::size_t(arm)];
    return t && t->seconds <= (1 + o.p_max) * best_s(known[i]);
  }
  bool similar(std::size_t of, std::size_t other) const {
    return o.similar == similarity::others_serve_it ? good(of, winner(other))
                                                    : good(other, winner(of));
  }
  double away(std::size_t i, std::span<const double> from) const {
    return distance(known[i].coordinates, from, o.by);
  }
  /// The largest distance to another problem within which all problems are similar.
  double reach(std::size_t i) const {
    double largest = 0;
    for (std::size_t j = 0; j < known.size(); ++j) {
      if (j == i) continue;
      const double limit = away(j, known[i].coordinates);
      bool all = true;
      for (std::size_t k = 0; k < known.size(); ++k)
        all =
            all && (k == i || away(k, known[i].coordinates) > limit * (1 + 1e-9) || similar(i, k));
      if (all) largest = std::max(largest, limit);
    }
    return largest;
  }
};

template <class Test>
void for_many_seeds(Test test) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    select::random_stream r(seed);
    test(r);
  }
}

}  // namespace

TEST_CASE("D_max is the distance up to which all are similar, as in the paper's example") {
  CHECK(largest_similar_distance({{1, true}, {2, true}, {3, false}, {4, true}, {5, false}}) == 2);
  CHECK(largest_similar_distance({{4, true}, {5, false}, {3, false}, {2, true}, {1, true}}) == 2);
  CHECK(largest_similar_distance({{1, false}, {2, true}}) == 0);
  CHECK(largest_similar_distance({{1, true}, {7, true}}) == 7);
  CHECK(largest_similar_distance({}) == 0);
}

TEST_CASE("problems that are as far as one another count for D_max only together") {
  CHECK(largest_similar_distance({{1, true}, {2, true}, {2, false}}) == 1);
  CHECK(largest_similar_distance({{1, true}, {2, false}, {2, true}}) == 1);
  CHECK(largest_similar_distance({{1, true}, {2, true}, {2 + 1e-12, false}}) == 1);
}

TEST_CASE("distances are the paper's, or octaves") {
  const std::vector<double> a{100, 8}, b{400, 2}, none{0, 1};
  CHECK(distance(a, b, metric::lengths) == Approx(std::hypot(300.0, 6.0)).epsilon(1e-12));
  CHECK(distance(a, b, metric::logarithms) == Approx(std::hypot(2.0, 2.0)).epsilon(1e-12));
  CHECK(distance(none, std::vector<double>{1, 1}, metric::logarithms) == 0);
  CHECK_THROWS_WITH(distance(a, std::vector<double>{1}, metric::lengths),
                    ContainsSubstring("equal numbers of coordinates"));
}

TEST_CASE("winners, good arms and D_max are what their definitions say") {
  for_many_seeds([](select::random_stream& r) {
    const std::vector<instance> known = random_problems(r);
    const analysis_options o = random_options(r);
    const analysis found(known, o);
    const oracle right{known, o};
    for (std::size_t i = 0; i < known.size(); ++i) {
      REQUIRE(found.winner(i) == right.winner(i));
      std::vector<int> good;
      for (std::size_t a = 0; a < known[i].arms.size(); ++a)
        if (right.good(i, int(a))) good.push_back(int(a));
      REQUIRE(found.good_arms(i) == good);
      REQUIRE(found.reach(i) == right.reach(i));
    }
  });
}

TEST_CASE("each reading of D_max holds what it promises") {
  for_many_seeds([](select::random_stream& r) {
    const std::vector<instance> known = random_problems(r);
    analysis_options o = random_options(r);
    for (const similarity reading : {similarity::others_serve_it, similarity::it_serves_others}) {
      o.similar = reading;
      const analysis found(known, o);
      for (std::size_t i = 0; i < known.size(); ++i)
        for (std::size_t j = 0; j < known.size(); ++j) {
          if (j == i || found.reach(i) == 0 ||
              distance(known[i].coordinates, known[j].coordinates, o.by) > found.reach(i))
            continue;
          if (reading == similarity::others_serve_it)
            REQUIRE(found.is_good(i, found.winner(j)));
          else
            REQUIRE(found.is_good(j, found.winner(i)));
        }
    }
  });
}

TEST_CASE("Algorithm 1 does not hold what the paper's text promises, which is the default") {
  // The best arm at 1 KiB is good enough at 2 KiB; the best arm at 2 KiB is bad at 1 KiB.
  const std::vector<instance> known{sized(1024, {takes(1), takes(2)}),
                                    sized(2048, {takes(2.05), takes(2)})};
  const analysis text(known), algorithm(known, {.similar = similarity::it_serves_others});
  CHECK(text.reach(0) == 0);
  CHECK(algorithm.reach(0) == 1);
  CHECK_FALSE(algorithm.is_good(0, algorithm.winner(1)));
  CHECK(text.reach(1) == 1);
  CHECK(algorithm.reach(1) == 0);
}

TEST_CASE("predict from closest: the closest of those that reach, else no prediction") {
  for_many_seeds([](select::random_stream& r) {
    const std::vector<instance> known = random_problems(r);
    const analysis_options o = random_options(r);
    const oracle right{known, o};
    std::vector<double> at;
    for (const double c : known.front().coordinates) at.push_back(c * (1 + 0.4 * r.below(3)));
    const prediction said = analysis(known, o).from_closest(at);
    std::optional<std::size_t> closest;
    for (std::size_t i = 0; i < known.size(); ++i)
      if (right.away(i, at) <= right.reach(i) * (1 + 1e-9) &&
          (!closest || right.away(i, at) < right.away(*closest, at)))
        closest = i;
    REQUIRE(said.made.has_value() == closest.has_value());
    if (!closest) {
      REQUIRE(said.why_not == "no known problem reaches that far");
      return;
    }
    REQUIRE(said.made->arm == right.winner(*closest));
    REQUIRE(said.made->seconds > 0);
    REQUIRE(said.made->largest_s == (1 + o.p_max) * said.made->seconds);
  });
}

TEST_CASE("predict from similar: votes by 1 / distance of those that reach, else no prediction") {
  for_many_seeds([](select::random_stream& r) {
    const std::vector<instance> known = random_problems(r);
    const analysis_options o = random_options(r);
    const oracle right{known, o};
    std::vector<double> at;
    for (const double c : known.front().coordinates) at.push_back(c * (1 + 0.4 * r.below(3)));
    const prediction said = analysis(known, o).from_similar(at);
    std::map<int, double> votes;
    bool exact = false;
    for (std::size_t i = 0; i < known.size(); ++i) exact = exact || right.away(i, at) == 0;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const double away = right.away(i, at);
      if (exact ? away == 0 : away <= right.reach(i) * (1 + 1e-9))
        votes[right.winner(i)] += exact ? 1 : 1 / away;
    }
    REQUIRE(said.made.has_value() == !votes.empty());
    if (!said.made) return;
    REQUIRE(std::isfinite(said.made->seconds));
    for (const auto& [arm, weight] : votes) REQUIRE(weight <= votes[said.made->arm] * (1 + 1e-12));
  });
}

TEST_CASE("a problem that is known is predicted exactly, however little its D_max is") {
  const std::vector<instance> known{sized(64, {takes(1), takes(2)}),
                                    sized(65, {takes(9), takes(3)}),
                                    sized(66, {takes(1), takes(4)})};
  const analysis found(known, {.p_max = 0});
  REQUIRE(found.reach(1) == 0);
  for (const prediction& said :
       {found.from_closest(known[1].coordinates), found.from_similar(known[1].coordinates)}) {
    REQUIRE(said.made);
    CHECK(said.made->arm == 1);
    CHECK(said.made->seconds == 3);
  }
}

TEST_CASE("nothing known is no prediction, and not the first arm") {
  const analysis nothing({});
  for (const auto how :
       {&analysis::from_closest, &analysis::from_similar, &analysis::from_curves}) {
    const prediction said = (nothing.*how)(std::vector<double>{64});
    CHECK_FALSE(said.made);
    CHECK(said.why_not == "no problem is known");
  }
  const analysis far({sized(64, {takes(1), takes(2)})});
  for (const auto how : {&analysis::from_closest, &analysis::from_similar, &analysis::from_curves})
    CHECK_FALSE((far.*how)(std::vector<double>{1 << 20}).made);
}

TEST_CASE("the time that is expected lies on the line between problems on both sides") {
  const std::vector<instance> known{sized(100, {takes(1)}), sized(300, {takes(3)}),
                                    sized(800, {takes(8)})};
  const analysis lengths(known, {.by = metric::lengths});
  CHECK(lengths.from_closest(std::vector<double>{250}).made->seconds == Approx(2.5).epsilon(1e-12));
  CHECK(lengths.from_similar(std::vector<double>{400}).made->seconds == Approx(4).epsilon(1e-12));
  CHECK(lengths.from_closest(std::vector<double>{90}).made->seconds == 1);  // no problem beyond
  const analysis logarithms(known);
  CHECK(logarithms.from_closest(std::vector<double>{std::sqrt(100 * 300.0)}).made->seconds ==
        Approx(std::sqrt(3.0)).epsilon(1e-12));
}

TEST_CASE("curves find where two arms cross though neither neighbour has the best arm") {
  // t0 and t2 are straight lines in logarithms; arm 1 is the best only in the middle, where nothing
  // was measured.
  const auto at = [](double bytes) {
    const double x = std::log2(bytes);
    return sized(bytes,
                 {takes(std::exp2(x)), takes(std::exp2(5 + x / 2 - 0.2)), takes(std::exp2(10))});
  };
  const analysis known({at(1 << 8), at(1 << 9), at(3 << 9), at(1 << 12)});
  CHECK(known.winner(1) == 0);
  CHECK(known.winner(2) == 2);
  const prediction said = known.from_curves(std::vector<double>{1010});
  REQUIRE(said.made);
  CHECK(said.made->arm == 1);
  CHECK(said.made->seconds == Approx(at(1010).arms[1]->seconds).epsilon(0.02));
}

TEST_CASE("where times are uncertain curves go by more problems, and by the surer ones") {
  // Arm 1 takes 10 % longer, except for one size with a lucky measurement.
  const auto problems = [](double error) {
    std::vector<instance> known;
    for (int i = 0; i < 9; ++i)
      known.push_back(sized(1000 * std::exp2(i / 4.0),
                            {takes(1, 0.01), takes(i == 3 ? 0.5 : 1.1, i == 3 ? error : 0.01)}));
    return known;
  };
  const std::vector<double> beside{1000 * std::exp2(3.5 / 4.0)};
  CHECK(analysis(problems(1.0)).from_curves(beside).made->arm == 0);
  CHECK(analysis(problems(0.0)).from_curves(beside).made->arm == 1);
}

TEST_CASE("an arm that is known on one side only is compared with the best one there") {
  // At 2 MiB the arm takes half of the other arm's time, but more than the other arm takes at 1
  // MiB. At 1 MiB it takes twice the other arm's time, but less than the other arm takes at 2 MiB.
  const analysis gained(
      {sized(1 << 20, {takes(1), missing}), sized(2 << 20, {takes(4), takes(2)})});
  CHECK(gained.from_curves(std::vector<double>{1.4 * (1 << 20)}).made->arm == 1);
  const analysis lost(
      {sized(1 << 20, {takes(1), takes(1.5)}), sized(2 << 20, {takes(4), missing})});
  CHECK(lost.from_curves(std::vector<double>{1.6 * (1 << 20)}).made->arm == 0);
}

TEST_CASE("predictions are of arms that are known, whatever is") {
  for_many_seeds([](select::random_stream& r) {
    const std::vector<instance> known = random_problems(r);
    const analysis found(known, random_options(r));
    const prediction said = found.from_curves(known.front().coordinates);
    REQUIRE(said.made);
    REQUIRE(std::isfinite(said.made->seconds));
    REQUIRE(std::ranges::any_of(
        known, [&](const instance& i) { return i.arms[std::size_t(said.made->arm)].has_value(); }));
  });
}

TEST_CASE("what cannot be analysed is refused") {
  const auto refused = [](std::vector<instance> known, analysis_options o = {}) {
    CHECK_THROWS_AS(analysis(std::move(known), o), error);
  };
  refused({sized(1, {takes(1)}), sized(1, {takes(1), takes(2)})});
  refused({sized(1, {takes(1)}), {{1, 2}, {takes(1)}}});
  refused({sized(1, {missing})});
  refused({sized(1, {takes(0)})});
  refused({sized(1, {takes(1, -1)})});
  refused({sized(1, {takes(std::numeric_limits<double>::infinity())})});
  refused({sized(-1, {takes(1)})});
  refused({sized(std::nan(""), {takes(1)})});
  refused({sized(1, {takes(1)})}, {.p_max = -0.1});
}

TEST_CASE("leaving one out never sees the one left out") {
  // Each problem's own time would make its own arm the best.
  std::vector<instance> known;
  for (int i = 0; i < 4; ++i) {
    times t(4, takes(2));
    t[std::size_t(i)] = takes(1);
    known.push_back(sized(1 << (6 + i), t));
  }
  for (const auto how :
       {&analysis::from_closest, &analysis::from_similar, &analysis::from_curves}) {
    const auto named = leave_one_out(known, how);
    for (std::size_t i = 0; i < known.size(); ++i) CHECK(named[i] != std::optional(int(i)));
    CHECK(accuracy(named, known).right(0.1) == 0);
  }
}

TEST_CASE("an arm that cannot run is not predicted from where it could") {
  const std::vector<instance> known{sized(64, {takes(1), missing}),
                                    sized(128, {takes(2), takes(1)})};
  CHECK(leave_one_out(known, &analysis::from_curves).front() == std::optional(0));
}

TEST_CASE("no prediction counts as wrong, and loses nothing") {
  const std::vector<instance> really{sized(1, {takes(1), takes(1.05), takes(3)}),
                                     sized(2, {takes(1), takes(2), missing})};
  const std::vector<std::optional<int>> near_best{1, std::nullopt}, cannot{0, 2}, wrong{2, 0};
  CHECK(accuracy(near_best, really).right(0.1) == 0.5);
  CHECK(accuracy(near_best, really).right(0.01) == 0);
  CHECK(accuracy(near_best, really).predicted() == 1);
  CHECK(accuracy(near_best, really).mean_loss() == Approx(0.05).epsilon(1e-9));
  CHECK(accuracy(cannot, really).right(9) == 0.5);
  CHECK(accuracy(wrong, really).mean_loss() == Approx(1).epsilon(1e-9));
  CHECK(best_single_arm(really) == std::optional(0));
  CHECK_FALSE(best_single_arm({}));
}

namespace {

arm_experience ran(std::string arm, double median_s, std::int64_t samples = 100,
                   double spread = 0.1) {
  return {.arm = std::move(arm),
          .calls = samples,
          .times = {.samples = samples,
                    .mean_s = median_s,
                    .spread = spread,
                    .quantiles = {.low_s = median_s, .median_s = median_s, .high_s = median_s}}};
}

experience broadcast(std::int64_t bytes, std::vector<arm_experience> arms) {
  return {.of = {.collective = "broadcast", .num_ranks = 16, .bytes = bytes},
          .arms = std::move(arms)};
}

}  // namespace

TEST_CASE("groups are what differs in its size alone") {
  std::vector<experience> known{broadcast(4096, {ran("native", 2e-5), ran("binomial", 1e-5)}),
                                broadcast(64, {ran("linear", 3e-6), ran("native", 1e-6)}),
                                broadcast(64, {}),  // nothing was timed
                                broadcast(64, {ran("native", 4e-6)})};
  known.push_back(known.front());
  known.back().of.num_ranks = 32;
  const std::vector<group> groups = groups_of(known);
  REQUIRE(groups.size() == 2);
  const group& g = groups.front();
  CHECK(g.of.num_ranks == 16);
  CHECK(g.arms == std::vector<std::string>{"native", "binomial", "linear"});
  CHECK(g.contexts == std::vector<std::size_t>{0, 1, 3});
  REQUIRE(g.problems.size() == 2);
  CHECK(g.problems[0].coordinates == std::vector<double>{64});
  CHECK_FALSE(g.problems[0].arms[1]);
  // Two runs with times of 1 and 4 us and equal uncertainty.
  CHECK(g.problems[0].arms[0]->seconds == Approx(2e-6).epsilon(1e-9));
  CHECK(g.problems[0].arms[0]->error ==
        Approx(timing_of(ran("native", 1e-6)).error / std::sqrt(2)).epsilon(1e-9));
  CHECK(groups.back().of.num_ranks == 32);
}

TEST_CASE("few calls are not taken for exact") {
  CHECK(timing_of(ran("native", 1e-6, 1, 0)).error > 0.1);
  CHECK(timing_of(ran("native", 1e-6, 100, 0)).error < timing_of(ran("native", 1e-6, 4, 0)).error);
  CHECK(timing_of(ran("native", 1e-6, 100, 0.5)).error >
        timing_of(ran("native", 1e-6, 100, 0.1)).error);
}

TEST_CASE("a slower clock contradicts nothing but the paper's rule") {
  const experience known = broadcast(4096, {ran("native", 2e-5), ran("binomial", 1e-5)});
  const auto worth = known_worth(known, "binomial");
  REQUIRE(worth);
  CHECK(worth->gain == Approx(std::log(2)).epsilon(1e-9));
  const experience slower = broadcast(4096, {ran("native", 4e-5), ran("binomial", 2e-5)});
  CHECK_FALSE(contradicts(*known_worth(slower, "binomial"), *worth, 0.1));
  const forecast said{.arm = 1, .seconds = 1e-5, .largest_s = 1.1e-5};
  CHECK(contradicts_by_time(2e-5, said));
  CHECK(contradicts_by_time(0.5e-5, said));
  CHECK_FALSE(contradicts_by_time(1.05e-5, said));
  CHECK_FALSE(contradicts_by_time(0.95e-5, said));
}

TEST_CASE("an arm that is worth something else contradicts, once that is clear") {
  const select::pair_record known{.pairs = 50, .gain = std::log(2), .deviation = 0.02};
  const auto now = [](double gain, std::optional<double> deviation) {
    return select::pair_record{.pairs = 9, .gain = gain, .deviation = deviation};
  };
  CHECK(contradicts(now(-0.5, 0.05), known, 0.1));
  CHECK(contradicts(now(1.5, 0.05), known, 0.1));  // another machine's knowledge may err both ways
  CHECK_FALSE(contradicts(now(-0.5, 0.6), known, 0.1));
  CHECK_FALSE(contradicts(now(-0.5, std::nullopt), known, 0.1));
  CHECK_FALSE(contradicts(now(std::log(2) - 0.09, 0.001), known, 0.1));
}

TEST_CASE("what an arm is worth is said by its pairs, or by enough calls of both") {
  experience e = broadcast(64, {ran("native", 2e-6), ran("linear", 1e-6), ran("ring", 1e-6, 1)});
  CHECK_FALSE(known_worth(e, "native"));
  CHECK_FALSE(known_worth(e, "binomial"));
  CHECK_FALSE(known_worth(e, "ring"));
  e.arms[2].pairs = select::pair_record{.pairs = 4, .gain = 0.3, .deviation = 0.1};
  CHECK(known_worth(e, "ring")->gain == 0.3);
  e.arms[2].pairs->deviation.reset();
  CHECK_FALSE(known_worth(e, "ring"));
  CHECK(known_worth(e, "linear")->deviation.value() ==
        Approx(std::sqrt(2 * 0.1 * 0.1 / 100)).epsilon(1e-9));
}
