// SPDX-License-Identifier: BSL-1.0
//
// Fits a machine model to times of collectives. The times of algorithms with a closed form give
// scales of the link parameters and one factor per algorithm, estimated together. The method is
// Levenberg-Marquardt (doi:10.1137/0111030) on the logarithms with Huber's weights; weak priors
// keep parameters that the data do not determine.
#pragma once

#include "collectives/registry.hpp"
#include "models/profile.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/fit/lines.hpp"
#include "railpass/fit/misfit.hpp"
#include "railpass/select/belief/misfit.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace railpass {

/// Link parameters and corrections of the algorithms, fitted to times of collectives.
struct collective_fit {
  machine_model machine;
  std::vector<algorithm_correction> corrections;
  double residual_spread = 0;  ///< of ln(measured / corrected closed form) over all of them
};

namespace detail {

// Scales the time of an empty message, and the time that bytes add.
inline void scale(time_curve& curve, double empty, double bytes) {
  time_curve::piece before{};  // the unscaled piece before
  for (std::size_t i = 0; i < curve.pieces.size(); ++i) {
    time_curve::piece& p = curve.pieces[i];
    // A step is part of the time that bytes add.
    const double from_s = i == 0 ? empty * p.alpha_s
                                 : curve.pieces[i - 1].at_s(p.from_bytes) +
                                       bytes * (p.at_s(p.from_bytes) - before.at_s(p.from_bytes));
    before = p;
    p.s_per_byte *= bytes;
    p.alpha_s = from_s - p.from_bytes * p.s_per_byte;
  }
}

struct known_time {
  arm what;
  int family = 0;  // index into the algorithms in the data
  const collective_time* measured = nullptr;

  /// The call of this time on any machine.
  cost_query call(const machine_model& machine) const {
    return {.machine = machine,
            .num_ranks = measured->num_ranks,
            .ranks_per_node = measured->ranks_per_node,
            .ranks_per_cache = measured->ranks_per_cache,
            .bytes = double(measured->bytes),
            .unit_bytes = double(unit_bytes_of(what.base->op, measured->bytes))};
  }
};

// The unknowns: logarithms of the factors of machine parameters and of closed forms. Pieces of a
// link share their scales if their proportions were sampled.
class collective_problem {
 public:
  collective_problem(machine_model start, std::span<const known_time> known, int num_families,
                     bool shared_scales, double trust_spread)
      : start_(std::move(start)), known_(known), shared_(shared_scales) {
    // Prior standard deviations of the logarithms keep parameters that the times do not determine.
    std::vector<double> spreads{trust_spread};  // of the first scale, local work
    for (const link_model* link : {&start_.same_node, &start_.across_nodes}) {
      first_scale_.push_back(int(spreads.size()));
      spreads.push_back(overhead_spread);
      for (std::size_t k = 0; k < (shared_ ? 1 : link->pieces.size()); ++k)
        spreads.insert(spreads.end(),
                       {trust_spread, trust_spread, std::min(trust_spread, burst_spread)});
    }
    num_scales_ = int(spreads.size());
    spreads.insert(spreads.end(), std::size_t(num_families), factor_spread);
    prior_ = Eigen::Map<const Eigen::VectorXd>(spreads.data(), Eigen::Index(spreads.size()));
    theta_ = Eigen::VectorXd::Zero(prior_.size());
    residuals_ = residuals_at(theta_);
    // At first the whole residual counts as error of the time.
    errors_ = Eigen::VectorXd(residuals_.size());
    for (Eigen::Index i = 0; i < residuals_.size(); ++i)
      errors_(i) = error_at(i).variance_given(residuals_(i) * residuals_(i));
    solve();
  }

  machine_model machine() const { return machine_at(theta_); }
  double factor(int family) const { return std::exp(theta_(num_scales_ + family)); }
  const Eigen::VectorXd& residuals() const { return residuals_; }
  /// Costs of problems with the same times are comparable.
  double cost() const {
    constexpr double misfit = 0.1;
    Eigen::VectorXd scales(residuals_.size());
    for (Eigen::Index i = 0; i < scales.size(); ++i)
      scales(i) = std::sqrt(misfit * misfit + error_at(i).variance);
    return cost_at(residuals_, theta_, scales);
  }

 private:
  // Per piece: latency, time per byte in a stream, and the ratio for bytes of a single message.
  static constexpr int num_piece_scales = 3;
  // Ranks that share cores have more overhead per message than the two idle ranks with which links
  // are sampled: up to e^2.5 times this value, or more if the data require it. Overhead never
  // shrinks: closed forms that count too many messages do not make messages free.
  static constexpr double typical_overhead_s = 1e-6, overhead_spread = 2.5;
  static constexpr double burst_spread = 0.5, factor_spread = 0.25;

  machine_model machine_at(const Eigen::VectorXd& theta) const {
    machine_model m = start_;
    for (local_model* l : {&m.copy, &m.reduce}) {
      l->alpha_s *= std::exp(theta(0));
      l->s_per_byte *= std::exp(theta(0));
    }
    std::size_t number = 0;
    for (link_model* link : {&m.same_node, &m.across_nodes}) {
      const int first = first_scale_[number++];
      double overhead_s = typical_overhead_s * (std::exp(theta(first)) - 1);
      if (shared_) overhead_s = std::max(0.0, overhead_s);
      for (std::size_t k = 0; k < link->pieces.size(); ++k) {
        link_piece& p = link->pieces[k];
        const int mine = first + 1 + (shared_ ? 0 : num_piece_scales * int(k));
        const double alone = p.gap_s_per_byte + p.latency_s_per_byte;
        p.send_overhead_s = std::max(0.0, p.send_overhead_s + overhead_s);
        p.receive_overhead_s = std::max(0.0, p.receive_overhead_s + overhead_s);
        p.latency_s *= std::exp(theta(mine));
        p.gap_s_per_byte *= std::exp(theta(mine + 1));
        p.latency_s_per_byte =
            alone * std::exp(theta(mine + 1) + theta(mine + 2)) - p.gap_s_per_byte;
        if (k == 0) continue;
        // Different scales of neighbouring pieces must not make a downward step.
        const link_piece& before = link->pieces[k - 1];
        const auto end_s = [&](const link_piece& piece) {
          return piece.send_overhead_s + piece.latency_s + piece.receive_overhead_s +
                 p.from_bytes * (piece.gap_s_per_byte + piece.latency_s_per_byte);
        };
        p.latency_s += std::max(0.0, end_s(before) - end_s(p));
      }
      for (time_curve* curve : {&link->exchange, &link->shift, &link->flow, &link->crowd})
        scale(*curve, std::exp(theta(first + 1)), std::exp(theta(first + 2)));
    }
    return m;
  }

  Eigen::VectorXd residuals_at(const Eigen::VectorXd& theta) const {
    const machine_model machine = machine_at(theta);
    Eigen::VectorXd r(Eigen::Index(known_.size()));
    for (std::size_t i = 0; i < known_.size(); ++i) {
      const known_time& k = known_[i];
      const double closed_form = k.what.base->cost_s(k.call(machine), k.what.values);
      r(Eigen::Index(i)) = std::log(k.measured->median_s / std::max(closed_form, 1e-12)) -
                           theta(num_scales_ + k.family);
    }
    return r;
  }

  double cost_at(const Eigen::VectorXd& r, const Eigen::VectorXd& theta,
                 const Eigen::VectorXd& scales) const {
    double cost = 0.5 * theta.cwiseQuotient(prior_).squaredNorm();
    for (const double x : r.cwiseQuotient(scales)) cost += huber_cost(x);
    return cost;
  }

  time_error error_at(Eigen::Index i) const { return error_of(*known_[std::size_t(i)].measured); }

  // Standard deviations of the residuals: the error of the closed forms, and the errors of the
  // times, which are estimated again.
  Eigen::VectorXd scales() {
    constexpr double outlier = 4;  // times the usual variance
    std::vector<double> usual;
    for (Eigen::Index i = 0; i < errors_.size(); ++i)
      if (errors_(i) <= outlier * error_at(i).variance) usual.push_back(residuals_(i));
    if (usual.empty()) usual.assign(residuals_.begin(), residuals_.end());
    const double spread = std::max(0.05, robust_spread(usual));
    const double misfit = spread * spread;
    for (Eigen::Index i = 0; i < errors_.size(); ++i) {
      const double share = errors_(i) / (errors_(i) + misfit), part = share * residuals_(i);
      errors_(i) = error_at(i).variance_given(part * part + share * misfit);
    }
    return (errors_.array() + misfit).sqrt();
  }

  void solve() {
    double damping = 1e-2;
    for (int iteration = 0; iteration < 100; ++iteration) {
      const Eigen::VectorXd scale = scales();
      Eigen::MatrixXd jacobian = Eigen::MatrixXd::Zero(residuals_.size(), theta_.size());
      constexpr double step = 1e-4;
      for (int k = 0; k < num_scales_; ++k) {
        Eigen::VectorXd moved = theta_;
        moved(k) += step;
        jacobian.col(k) = (residuals_at(moved) - residuals_) / step;
      }
      Eigen::VectorXd weights(residuals_.size());
      for (Eigen::Index i = 0; i < residuals_.size(); ++i) {
        jacobian(i, num_scales_ + known_[std::size_t(i)].family) = -1;
        weights(i) = huber_weight(residuals_(i) / scale(i)) / (scale(i) * scale(i));
      }
      const Eigen::VectorXd precision = prior_.array().square().inverse();
      const Eigen::MatrixXd normal = jacobian.transpose() * weights.asDiagonal() * jacobian +
                                     Eigen::MatrixXd(precision.asDiagonal());
      const Eigen::VectorXd gradient = jacobian.transpose() * (weights.asDiagonal() * residuals_) +
                                       precision.cwiseProduct(theta_);
      const double cost = cost_at(residuals_, theta_, scale);
      double change = 0;
      for (; damping < 1e8; damping *= 4) {
        Eigen::MatrixXd damped = normal;
        damped.diagonal() *= 1 + damping;
        const Eigen::VectorXd trial = theta_ - damped.ldlt().solve(gradient);
        const Eigen::VectorXd trial_residuals = residuals_at(trial);
        if (!trial_residuals.allFinite() || cost_at(trial_residuals, trial, scale) >= cost)
          continue;
        change = (trial - theta_).cwiseAbs().maxCoeff();
        theta_ = trial;
        residuals_ = trial_residuals;
        damping /= 10;
        break;
      }
      if (change < 1e-6) return;
    }
  }

  machine_model start_;
  std::span<const known_time> known_;
  bool shared_;
  std::vector<int> first_scale_;
  int num_scales_ = 0;
  Eigen::VectorXd prior_, theta_, residuals_;
  Eigen::VectorXd errors_;  // variances
};

// The times that tell how far an algorithm is off its closed form: all, or some, evenly chosen by
// variant, ranks and size, because the work grows with the cube of their number.
inline std::vector<std::size_t> points_of(std::span<const known_time> known, int family) {
  constexpr std::size_t most = 200;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i].family == family) all.push_back(i);
  if (all.size() <= most) return all;
  std::ranges::stable_sort(all, {}, [&](std::size_t i) {
    const collective_time& t = *known[i].measured;
    return std::tuple(std::string_view(t.arm), t.num_ranks, t.bytes);
  });
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * all.size() / most]);
  return some;
}

}  // namespace detail

/// Trust in the initial machine: its links were sampled, or guessed to an order of magnitude.
enum class machine_trust { sampled, guessed };

/// Fits a machine to `times`, starting from `start`. Ignores arms without a closed form, calls of
/// one rank and empty messages. Guessed links may get a second piece, for a change of protocol.
/// @throws error if an arm is unknown or no usable time is left
inline collective_fit fit_collectives(const machine_model& start,
                                      std::span<const collective_time> times, machine_trust trust) {
  std::vector<detail::known_time> known;
  std::vector<const algorithm*> families;
  for (const collective_time& t : times) {
    const auto op = find_collective(t.collective);
    if (!op) throw error("fit: there is no collective '" + t.collective + "'");
    const arm a = parse_arm(*op, t.arm);
    if (!a.base->cost_s || t.num_ranks < 2 || t.bytes < 1) continue;
    const auto family = std::find(families.begin(), families.end(), a.base);
    known.push_back({a, int(family - families.begin()), &t});
    if (family == families.end()) families.push_back(a.base);
  }
  if (known.empty())
    throw error("fit: expected times of at least one algorithm with a closed form");

  const bool sampled = trust == machine_trust::sampled;
  detail::collective_problem best(start, known, int(families.size()), sampled, sampled ? 0.1 : 2.5);
  if (!sampled) {
    constexpr double price = 4;  // of two more parameters and a position
    const double one_piece = best.cost() - price;
    double least = one_piece;
    for (double cut = 2048; cut <= 256 * 1024; cut *= 2) {
      machine_model two = start;
      for (link_model* link : {&two.same_node, &two.across_nodes}) {
        link->pieces = {link->pieces.front(), link->pieces.front()};
        link->pieces[1].from_bytes = cut + 1;
      }
      detail::collective_problem trial(two, known, int(families.size()), false, 2.5);
      if (trial.cost() >= least) continue;
      least = trial.cost();
      best = std::move(trial);
    }
  }

  const Eigen::VectorXd& r = best.residuals();
  collective_fit result{
      .machine = best.machine(),
      .corrections = {},
      .residual_spread = std::max(detail::least_residual_spread,
                                  robust_spread({r.data(), std::size_t(r.size())}))};
  for (std::size_t f = 0; f < families.size(); ++f) {
    std::vector<misfit_features> features;
    std::vector<double> residuals, seconds;
    std::vector<detail::time_error> errors;
    for (const std::size_t i : detail::points_of(known, int(f))) {
      seconds.push_back(known[i].measured->median_s);
      features.push_back(select::misfit_features_of(known[i].what, known[i].call(result.machine)));
      residuals.push_back(r(Eigen::Index(i)));
      errors.push_back(detail::error_of(*known[i].measured));
    }
    algorithm_correction correction{.collective = std::string(name_of(families[f]->op)),
                                    .algorithm = std::string(families[f]->name),
                                    .factor = best.factor(int(f)),
                                    .points = detail::weigh(features, residuals, errors)};
    for (std::size_t i = 0; i < seconds.size(); ++i) correction.points[i].seconds = seconds[i];
    result.corrections.push_back(std::move(correction));
  }
  return result;
}

}  // namespace railpass
