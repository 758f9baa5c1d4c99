// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/surrogate.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>

namespace railpass::internal::tune {

namespace {

using matrix = Eigen::MatrixXd;
using vector = Eigen::VectorXd;

// Correlation length of numeric levels, in levels.
constexpr double level_range = 1.5;

}  // namespace

struct surrogate::state {
  const space& where;
  std::vector<std::size_t> active;                            // parameters with more than one level
  std::vector<std::vector<std::vector<double>>> correlation;  // of the levels of active ones
  // Parameters of the covariance, in units of the scores' variance.
  std::vector<double> relevance;  // per active parameter
  double single = 1, pair = 0.5, own = 0.02, noise = 0.01;

  std::vector<combination> seen;
  vector scores;   // without centre, in units of scale
  vector per_run;  // 1 / launches
  double centre = 0, scale = 1;
  Eigen::LLT<matrix> factor;
  vector solved;

  explicit state(const space& s) : where(s) {
    for (std::size_t i = 0; i < s.parameters().size(); ++i) {
      const parameter& p = s.parameters()[i];
      if (p.levels() < 2) continue;
      active.push_back(i);
      std::vector<std::size_t> rank(p.levels());
      for (std::size_t a = 0; a < rank.size(); ++a)
        for (std::size_t b = 0; p.numeric() && b < rank.size(); ++b)
          rank[a] += p.numbers[b] < p.numbers[a];
      auto& c = correlation.emplace_back(rank.size(), std::vector<double>(rank.size()));
      for (std::size_t a = 0; a < rank.size(); ++a)
        for (std::size_t b = 0; b < rank.size(); ++b)
          c[a][b] = a == b ? 1
                    : p.numeric()
                        ? std::exp(-std::abs(double(rank[a]) - double(rank[b])) / level_range)
                        : 0;
    }
    relevance.assign(active.size(), active.empty() ? 1 : 1.0 / double(active.size()));
  }

  double covariance(const combination& a, const combination& b) const {
    double sum = 0, squares = 0;
    bool same = true;
    for (std::size_t k = 0; k < active.size(); ++k) {
      const std::size_t i = active[k];
      const double c = relevance[k] * correlation[k][a[i]][b[i]];
      sum += c;
      squares += c * c;
      same = same && a[i] == b[i];
    }
    // The sum over pairs of products: the second elementary symmetric polynomial.
    return 1 + single * sum + pair * (sum * sum - squares) / 2 + (same ? own : 0);
  }

  matrix covariances() const {
    const Eigen::Index n = Eigen::Index(seen.size());
    matrix k(n, n);
    for (Eigen::Index i = 0; i < n; ++i) {
      for (Eigen::Index j = 0; j <= i; ++j)
        k(i, j) = k(j, i) = covariance(seen[std::size_t(i)], seen[std::size_t(j)]);
      k(i, i) += noise * per_run(i) + 1e-9;
    }
    return k;
  }

  // The logarithm of the likelihood, and of a weak prior that keeps parameters from running away.
  double evidence() const {
    const Eigen::LLT<matrix> llt(covariances());
    if (llt.info() != Eigen::Success) return -1e300;
    const vector half = llt.matrixL().solve(scores);
    double prior = 0;
    const auto keep = [&](double value, double around) {
      const double x = std::log(value / around) / 3;
      prior -= x * x / 2;
    };
    for (const double r : relevance) keep(r, 0.2);
    keep(single, 1);
    keep(pair, 0.5);
    keep(own, 0.02);
    keep(noise, 0.01);
    return prior - half.squaredNorm() / 2 - matrix(llt.matrixL()).diagonal().array().log().sum();
  }

  void learn(bool noise_is_known) {
    std::vector<double*> free{&single, &pair, &own};
    for (double& r : relevance) free.push_back(&r);
    if (!noise_is_known) free.push_back(&noise);
    double best = evidence();
    for (double factor_of : {6.0, 2.5, 1.6}) {
      for (double* value : free)
        for (const double f : {factor_of, 1 / factor_of}) {
          const double before = *value;
          *value = std::clamp(before * f, 1e-4, 30.0);
          const double now = evidence();
          if (now > best + 1e-6) {
            best = now;
            break;
          }
          *value = before;
        }
    }
  }

  void solve() {
    factor.compute(covariances());
    solved = factor.solve(scores);
  }
};

surrogate::surrogate(const space& where) : state_(std::make_unique<state>(where)) {}
surrogate::~surrogate() = default;

void surrogate::fit(std::span<const observation> observed, double noise, bool learn) {
  state& s = *state_;
  const Eigen::Index n = Eigen::Index(observed.size());
  s.seen.clear();
  s.scores.resize(n);
  s.per_run.resize(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const observation& o = observed[std::size_t(i)];
    s.seen.push_back(o.what);
    s.scores(i) = o.score;
    s.per_run(i) = 1 / o.runs;
  }
  s.centre = s.scores.mean();
  s.scores.array() -= s.centre;
  s.scale = std::max(std::sqrt(s.scores.squaredNorm() / double(n)), 1e-6);
  s.scores /= s.scale;
  if (noise > 0) s.noise = std::clamp(noise * noise / (s.scale * s.scale), 1e-6, 100.0);
  if (learn) s.learn(noise > 0);
  s.solve();
}

std::vector<surrogate::prediction> surrogate::predict(std::span<const combination> at) const {
  const state& s = *state_;
  const Eigen::Index n = Eigen::Index(s.seen.size());
  std::vector<prediction> result;
  result.reserve(at.size());
  constexpr std::size_t block = 512;
  for (std::size_t begin = 0; begin < at.size(); begin += block) {
    const auto part = at.subspan(begin, std::min(block, at.size() - begin));
    matrix cross(n, Eigen::Index(part.size()));
    for (Eigen::Index j = 0; j < cross.cols(); ++j)
      for (Eigen::Index i = 0; i < n; ++i)
        cross(i, j) = s.covariance(s.seen[std::size_t(i)], part[std::size_t(j)]);
    const vector means = cross.transpose() * s.solved;
    const matrix half = s.factor.matrixL().solve(cross);
    for (Eigen::Index j = 0; j < cross.cols(); ++j) {
      const combination& c = part[std::size_t(j)];
      const double variance = s.covariance(c, c) - half.col(j).squaredNorm();
      result.push_back(
          {s.centre + s.scale * means(j), s.scale * std::sqrt(std::max(variance, 1e-12))});
    }
  }
  return result;
}

}  // namespace railpass::internal::tune
