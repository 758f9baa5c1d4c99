// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/belief/belief.hpp"

#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

using namespace railpass;
using namespace railpass::select;

namespace {

// Two algorithms with three segment sizes each, and native.
std::vector<arm_prior> priors(double spread = 0.35) {
  std::vector<arm_prior> result{{.arm = 0, .native = true, .measured_only = true}};
  for (int family = 1; family <= 2; ++family)
    for (int s = 0; s < 3; ++s)
      result.push_back({.arm = int(result.size()),
                        .log_seconds = std::log(1e-3 * (1 + 0.1 * double(result.size()))),
                        .spread = spread,
                        .family = family,
                        .log2_segment = 12.0 + 2 * s});
  return result;
}

std::vector<observation> samples(int arm, double seconds, int count, double noise,
                                 random_stream& r) {
  std::vector<observation> result;
  for (int i = 0; i < count; ++i) result.push_back({arm, seconds * std::exp(noise * r.normal())});
  return result;
}

/// A belief, and the book from which it learns.
class taught : public belief {
 public:
  explicit taught(const std::vector<arm_prior>& arms) : belief(arms) {}
  void learn(std::span<const observation> merged, std::int64_t calls, int incumbent) {
    book_.add(merged, calls);
    belief::learn(book_, incumbent);
  }

 private:
  arm_book book_;
};

}  // namespace

TEST_CASE("the covariances of a belief stay symmetric and positive") {
  const std::uint64_t seed = GENERATE(range(1U, 9U));
  CAPTURE(seed);
  random_stream r(seed);
  taught b(priors());
  std::int64_t calls = 0;
  for (int epoch = 0; epoch < 200; ++epoch) {
    std::vector<observation> merged;
    for (int i = r.below(6); i >= 0; --i)
      merged.push_back({r.below(b.size()), 1e-3 * std::exp(2 * r.normal())});
    calls += 1 + r.below(50);
    b.learn(merged, calls, r.below(b.size()));
    for (int i = 0; i < b.size(); ++i) {
      REQUIRE(std::isfinite(b.mean(i)));
      REQUIRE(b.variance(i) > 0);
      for (int j = 0; j < b.size(); ++j) {
        const double both = b.covariances()(i, j);
        REQUIRE(both == Approx(b.covariances()(j, i)).margin(1e-9));
        REQUIRE(both * both <= b.variance(i) * b.variance(j) * (1 + 1e-9));
      }
    }
  }
}

TEST_CASE("a covariance after an observation is the conditional one") {
  // Against the textbook formula for a 2 x 2 example.
  covariance c(2);
  c(0, 0) = 2;
  c(1, 1) = 3;
  c(0, 1) = c(1, 0) = 1;
  c.observe(0, 0.5);
  REQUIRE(c(0, 0) == Approx(2 - 4 / 2.5));
  REQUIRE(c(0, 1) == Approx(1 - 2 / 2.5));
  REQUIRE(c(1, 1) == Approx(3 - 1 / 2.5));
  REQUIRE(c.of_difference(0, 1) == Approx(c(0, 0) + c(1, 1) - 2 * c(0, 1)));
}

TEST_CASE("an arm that takes another one's place is believed by its prior alone") {
  random_stream r(7);
  taught b(priors());
  for (int e = 0; e < 5; ++e) b.learn(samples(2, 4e-3, 8, 0.1, r), 8 * (e + 1), 1);
  const belief before = b;
  b.replace(2, {.arm = 9, .log_seconds = std::log(0.7e-3), .spread = 0.3, .family = 5});
  CHECK(b.mean(2) == Approx(std::log(0.7e-3)));
  CHECK(b.variance(2) == Approx(0.3 * 0.3));
  CHECK(b.samples(2) == 0);
  for (int i = 0; i < b.size(); ++i)
    for (int j = 0; j < b.size(); ++j)
      CHECK(b.covariances()(i, j) == Approx(i != 2 && j != 2 ? before.covariances()(i, j)
                                            : i == j         ? 0.09
                                                             : 0.0));
  // Samples of the new arm teach nothing about the algorithm of the arm that it replaced.
  b.learn(samples(9, 0.5e-3, 8, 0.1, r), 56, 1);
  CHECK(b.mean(2) == Approx(std::log(0.5e-3)).margin(0.1));
  CHECK(b.mean(1) == Approx(before.mean(1)).margin(0.05));
}

TEST_CASE("samples move the mean to what was measured") {
  random_stream r(1);
  taught b(priors());
  for (int epoch = 1; epoch <= 20; ++epoch) b.learn(samples(1, 3e-3, 8, 0.1, r), 8 * epoch, 1);
  REQUIRE(b.mean(1) == Approx(std::log(3e-3)).margin(0.05));
  REQUIRE(std::sqrt(b.variance(1)) < 0.05);
  REQUIRE(b.samples(1) == 160);
  REQUIRE(std::sqrt(b.noise_variance()) == Approx(0.1).margin(0.03));
}

TEST_CASE("what is learnt of one arm holds for its algorithm") {
  random_stream r(2);
  taught b(priors());
  const belief before = b;
  // The other algorithm is as predicted, so the slowness is not common to all arms.
  b.learn(samples(4, std::exp(before.mean(4)), 8, 0.05, r), 8, 4);
  b.learn(samples(1, std::exp(before.mean(1)) * 1.6, 8, 0.05, r), 16, 4);
  const auto moved = [&](int a) { return b.mean(a) - before.mean(a); };
  REQUIRE(moved(1) > 0.3);
  REQUIRE(moved(2) > 0.1);
  REQUIRE(moved(3) > moved(5) + 0.05);
  REQUIRE(std::abs(moved(5)) < 0.1);
}

TEST_CASE("what predictions from similar measurements are off by is each arm's own") {
  // A sample moves its neighbour more than arms of the other algorithm.
  const auto follows = [](double spread) {
    random_stream r(2);
    taught b(priors(spread));
    const belief before = b;
    b.learn(samples(4, std::exp(before.mean(4)), 8, 0.05, r), 8, 4);
    b.learn(samples(1, std::exp(before.mean(1)) * 1.2, 8, 0.05, r), 16, 4);
    return (b.mean(2) - before.mean(2)) - (b.mean(5) - before.mean(5));
  };
  REQUIRE(follows(0.35) > 0.05);
  REQUIRE(std::abs(follows(0.15)) < 0.01);
}

TEST_CASE("a machine that is slower altogether changes no order") {
  random_stream r(3);
  taught b(priors());
  const int before = b.cheapest();
  for (const int a : {1, 4}) b.learn(samples(a, 2.5 * std::exp(b.mean(a)), 4, 0.05, r), 8, 1);
  REQUIRE(b.cheapest() == before);
}

TEST_CASE(
    "predictions that are far too slow all together are corrected, one that is alone is not") {
  random_stream r(3);
  // Arms 1 and 4 are of different algorithms.
  taught all(priors()), alone(priors());
  const belief before = all;
  for (const int a : {1, 4}) all.learn(samples(a, std::exp(before.mean(a)) / 20, 4, 0.05, r), 8, 1);
  CHECK(all.mean(5) == Approx(before.mean(5) - std::log(20)).margin(0.6));
  alone.learn(samples(1, std::exp(before.mean(1)), 4, 0.05, r), 8, 1);
  alone.learn(samples(4, std::exp(before.mean(4)) / 20, 4, 0.05, r), 12, 1);
  CHECK(alone.mean(2) > before.mean(2) - 0.7);
}

TEST_CASE("one outlier among good samples is ignored") {
  random_stream r(4);
  taught b(priors());
  auto merged = samples(1, 1e-3, 6, 0.05, r);
  merged.push_back({1, 40e-3});
  b.learn(merged, 7, 1);
  REQUIRE(b.mean(1) == Approx(std::log(1e-3)).margin(0.1));
}

TEST_CASE("a bad first sample of an arm is not believed, the second is") {
  random_stream r(5);
  taught b(priors());
  for (int e = 0; e < 5; ++e) b.learn(samples(1, 1e-3, 8, 0.05, r), 8 * (e + 1), 1);
  const double before = b.mean(4);
  b.learn(std::vector<observation>{{4, 8e-3}}, 41, 1);
  REQUIRE(b.mean(4) < before + 0.1);
  b.learn(std::vector<observation>{{4, 8e-3}}, 42, 1);
  b.learn(std::vector<observation>{{4, 8e-3}}, 43, 1);
  REQUIRE(b.mean(4) > before + 1);
}

TEST_CASE("a change of the incumbent is noticed within a few epochs, noise is not taken for one") {
  const std::uint64_t seed = GENERATE(range(1U, 11U));
  CAPTURE(seed);
  random_stream r(seed);
  taught b(priors());
  std::int64_t calls = 0;
  int alarms = 0;
  const auto epoch = [&](double seconds) {
    b.learn(samples(1, seconds, 12, 0.1, r), calls + 100, 1);
    calls += 100;
    return b.changed();
  };
  for (int e = 0; e < 60; ++e) alarms += epoch(1e-3);
  REQUIRE(alarms <= 1);
  int needed = 0;
  while (!epoch(1.5e-3) && needed < 20) ++needed;
  REQUIRE(needed <= 3);
}

TEST_CASE("some slow calls are no change") {
  const std::uint64_t seed = GENERATE(range(1U, 6U));
  CAPTURE(seed);
  random_stream r(seed);
  taught b(priors());
  std::int64_t calls = 0;
  const auto learn = [&](const std::vector<observation>& merged) {
    b.learn(merged, calls + 100, 1);
    calls += 100;
  };
  for (int e = 0; e < 20; ++e) learn(samples(1, 1e-3, 16, 0.1, r));
  auto merged = samples(1, 1e-3, 16, 0.1, r);
  for (const std::size_t i : {2U, 7U, 11U, 14U}) merged[i].seconds *= 3;
  learn(merged);
  CHECK_FALSE(b.changed());
}

TEST_CASE("an arm that is nothing like its prediction stays condemned, and its algorithm is not") {
  const std::uint64_t seed = GENERATE(range(1U, 6U));
  CAPTURE(seed);
  random_stream r(seed);
  taught b(priors(0.1));
  // The second arm of the first algorithm takes 30 times as long; all other arms match their
  // prediction.
  const auto true_s = [](int arm) { return 1e-3 * (1 + 0.1 * arm) * (arm == 2 ? 30 : 1); };
  std::int64_t calls = 0;
  const auto play = [&](int arm, int count) {
    b.learn(samples(arm, true_s(arm), count, 0.1, r), calls + count, arm);
    calls += count;
  };
  play(2, 4);
  play(1, 4);
  CHECK(b.mean(2) > std::log(true_s(2)) - 0.7);
  CHECK(std::abs(b.mean(3) - std::log(true_s(3))) < 0.7);
  // Later measurements of other arms, however well they fit the prior, do not bring the arm back.
  for (int epoch = 0; epoch < 200; ++epoch) play(1 + 2 * (epoch % 3), 8);
  CHECK(b.mean(2) > std::log(true_s(2)) - 0.7);
}

TEST_CASE("an arm that became faster is believed after one sample") {
  random_stream r(3);
  taught b(priors());
  std::int64_t calls = 0;
  const auto play = [&](int arm, double seconds, int count) {
    b.learn(samples(arm, seconds, count, 0.05, r), calls + count, 1);
    calls += count;
  };
  for (int epoch = 0; epoch < 20; ++epoch) {
    play(1, 1e-3, 8);
    play(4, 1.5e-3, 4);
  }
  play(4, 0.5e-3, 1);
  CHECK(b.cheapest() == 4);
}

TEST_CASE("first calls that open connections do not condemn an arm") {
  taught b(priors(0.6));
  b.learn(std::vector<observation>{{1, 312e-6}, {2, 9e-6}}, 2, 0);
  b.learn(std::vector<observation>{{0, 190e-6}, {0, 30e-6}, {0, 1.2e-6}}, 5, 0);
  CHECK(b.mean(0) < std::log(2e-6));
}

TEST_CASE("a change is noticed in whatever arm was played most") {
  random_stream r(5);
  taught b(priors());
  std::int64_t calls = 0;
  bool noticed = false;
  for (int epoch = 0; epoch < 12; ++epoch) {
    // Plans already use arm 3, but the synchronised samples are of arm 1.
    b.learn(samples(1, epoch < 10 ? 1e-3 : 3e-3, 12, 0.05, r), calls + 12, 3);
    calls += 12;
    if (epoch < 10) REQUIRE_FALSE(b.changed());
    noticed = noticed || b.changed();
  }
  CHECK(noticed);
}

TEST_CASE("slow calls of an arm are the machine's until others were played as well") {
  random_stream r(8);
  taught b(priors());
  const auto play = [&](int arm, int count, int epoch) {
    std::vector<observation> merged = samples(arm, 1e-3, count, 0.05, r);
    for (observation& o : merged)
      if (r.uniform() < 0.05) o.seconds *= 50;
    b.learn(merged, count * (epoch + 1), arm);
  };
  for (int epoch = 0; epoch < 40; ++epoch) {
    play(1, 16, epoch);
    CHECK(b.cost(1) == b.mean(1));
  }
  // The same if the other arms have equally many.
  for (int epoch = 0; epoch < 40; ++epoch) {
    play(4, 16, epoch);
    CHECK(b.cost(1) == b.mean(1));
    CHECK(b.cost(4) == b.mean(4));
  }
}

TEST_CASE("an arm with frequent slow calls is charged for them") {
  random_stream r(6);
  taught b(priors());
  for (int e = 0; e < 40; ++e) {
    auto merged = samples(1, 1e-3, 15, 0.05, r);
    merged.push_back({1, 0.1});  // one in 16 takes a hundred times as long
    const auto other = samples(4, 1.5e-3, 16, 0.05, r);
    merged.insert(merged.end(), other.begin(), other.end());
    b.learn(merged, 32 * (e + 1), 1);
  }
  REQUIRE(b.mean(1) < b.mean(4));
  REQUIRE(b.expected(1) > b.expected(4));
}
