// SPDX-License-Identifier: BSL-1.0
//
// The paper's evaluation with the paper's subject, exchanges of halos. "accuracy" times every
// version at many sizes, and predicts the best version of each size from the other sizes. "mesh"
// changes the size of a mesh repeatedly. Rank 0 prints JSON on standard output.
//
//     mpirun -n 4 paper_adcl_halo accuracy DIMENSIONS SIZES ROUNDS
//     mpirun -n 4 paper_adcl_halo mesh DIMENSIONS CHANGES ITERATIONS ROUNDS SEED
#include "lib/halo/engine.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/halo_exchange.hpp"
#include "railpass/knowledge/accuracy.hpp"
#include "railpass/knowledge/near.hpp"
#include "railpass/select/policy/policy.hpp"
#include "railpass/select/policy/random.hpp"

#include <nlohmann/json.hpp>

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace railpass;
using namespace railpass::internal;
using nlohmann::ordered_json;

constexpr std::array windows{0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5};
constexpr std::int64_t element_bytes = sizeof(double);

int rank_here() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Times a call on its slowest rank.
template <class Call>
double seconds_of(const Call& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double began_s = MPI_Wtime();
  call();
  double took_s = MPI_Wtime() - began_s;
  MPI_Allreduce(MPI_IN_PLACE, &took_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took_s;
}

/// A rank's block and how many layers of it the neighbours need.
template <int D>
struct problem_size {
  std::array<std::int64_t, D> block{};
  std::int64_t width = 1;

  std::vector<double> lengths() const {  // of messages, in bytes, by dimension
    std::vector<double> bytes;
    for (std::size_t k = 0; k < D; ++k) {
      bytes.push_back(double(width * element_bytes));
      for (std::size_t j = 0; j < D; ++j)
        if (j != k) bytes.back() *= double(block[j]);
    }
    return bytes;
  }
};

/// An exchange of one size, as programs make it.
template <int D>
class exchange {
 public:
  exchange(const problem_size<D>& size, const std::string& name)
      : field_(memory_of(size)),
        halo_(grid(), field_.data(), extents<D>(size.block), size.width, {.name = name}) {}

  std::size_t num_versions() { return engine().candidates().size(); }
  bool has(std::size_t version) { return engine().candidates()[version].run != nullptr; }
  std::string name_of(std::size_t version) { return engine().candidates()[version].what->name(); }
  void call(std::size_t version) {
    engine().start(version);
    engine().finish();
  }
  void call() { halo_(); }

  /// Times all versions in turn, in a new order per round, each after an untimed call of the same.
  std::vector<std::optional<knowledge::timing>> timed(int rounds) {
    std::vector<std::vector<double>> times(num_versions());
    std::vector<std::size_t> order(num_versions());
    std::iota(order.begin(), order.end(), std::size_t(0));
    select::random_stream random(7);
    for (int round = 0; round < rounds; ++round) {
      random.shuffle(order);
      for (const std::size_t v : order) {
        if (!has(v)) continue;
        call(v);
        times[v].push_back(seconds_of([&] { call(v); }));
      }
    }
    std::vector<std::optional<knowledge::timing>> result(num_versions());
    for (std::size_t v = 0; v < times.size(); ++v) {
      if (times[v].empty()) continue;
      double mean = 0, squares = 0;
      for (const double s : times[v]) mean += std::log(s) / double(rounds);
      for (const double s : times[v]) squares += (std::log(s) - mean) * (std::log(s) - mean);
      result[v] = {median(times[v]), 1.25 * std::sqrt(squares) / double(rounds)};
    }
    return result;
  }

 private:
  static cartesian<D> grid() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::array<int, D> shape{};
    MPI_Dims_create(size, D, shape.data());
    return cartesian<D>(MPI_COMM_WORLD, extents<D>(shape), periodic);
  }
  static std::size_t memory_of(const problem_size<D>& size) {
    std::int64_t product = 1;
    for (const std::int64_t n : size.block) product *= n + 2 * size.width;
    return std::size_t(product);
  }
  internal::halo::engine& engine() { return halo_.plain().implementation(); }

  std::vector<double> field_;
  halo_exchange<D> halo_;
};

std::int64_t between(double first, double last, double share) {
  return std::llround(first * std::pow(last / first, share));
}

/// As many as the paper has with 50, 55 and 60: messages of 64 bytes to 1 MiB; blocks of 8 x 8 to
/// 1024 x 1024, one number no less than the other; boxes of 3 x 4 x 5 lengths.
template <int D>
std::vector<problem_size<D>> sizes_of(int count) {
  std::vector<problem_size<D>> sizes;
  if constexpr (D == 1) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t n = between(8, 131072, i / double(std::max(1, count - 1)));
      sizes.push_back({{n}, n});
    }
  } else if constexpr (D == 2) {
    const int lengths = int(std::sqrt(2 * count + 0.25));
    for (int i = 0; i < lengths; ++i)
      for (int j = 0; j <= i; ++j)
        sizes.push_back({{between(8, 1024, i / double(std::max(1, lengths - 1))),
                          between(8, 1024, j / double(std::max(1, lengths - 1)))}});
  } else {
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j)
        for (int k = 0; k < 5; ++k)
          sizes.push_back(
              {{between(8, 64, i / 2.0), between(8, 64, j / 3.0), between(4, 64, k / 4.0)}});
  }
  sizes.resize(std::min(sizes.size(), std::size_t(count)));
  return sizes;
}

using named_arms = std::vector<std::optional<int>>;  // by problem

/// For each problem, the version that a function set would take first if it knew all other
/// problems.
named_arms from_near(const std::vector<knowledge::instance>& known) {
  named_arms named(known.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::vector<knowledge::instance> others = knowledge::without(known, i);
    const auto kind_of = [](const knowledge::instance& one) {
      return knowledge::set_kind{.features = {one.coordinates.begin(), one.coordinates.end()}};
    };
    const knowledge::problem of;
    const knowledge::set_kind wanted = kind_of(known[i]);
    std::vector<knowledge::neighbour> near;
    for (const knowledge::instance& other : others) {
      knowledge::experience e;
      const auto away = knowledge::near(of, kind_of(other), {of, wanted, {}});
      if (!away) continue;
      constexpr std::int64_t samples = 16;
      for (std::size_t a = 0; a < other.arms.size(); ++a)
        if (const auto& t = other.arms[a])
          e.arms.push_back({.arm = std::to_string(a),
                            .times = {.samples = samples,
                                      .spread = t->error * std::sqrt(double(samples)),
                                      .quantiles = {.median_s = t->seconds}}});
      near.push_back({.distance = away->distance, .octaves = away->octaves, .known = std::move(e)});
    }
    std::ranges::stable_sort(near, {}, &knowledge::neighbour::distance);
    near.resize(std::min(near.size(), knowledge::most_near));
    auto priors = select::arms_of_versions(
        std::vector<std::vector<double>>(known[i].arms.size(), std::vector<double>(1)));
    knowledge::predict_from_near(priors, near, [](int arm) { return std::to_string(arm); });
    const select::arm_prior* best = nullptr;
    for (const select::arm_prior& p : priors)
      if (!p.measured_only && (!best || p.log_seconds < best->log_seconds)) best = &p;
    if (best) named[i] = best->arm;
  }
  return named;
}

/// Per window: the share of right predictions, the share without a prediction, the mean loss.
template <class Named>
ordered_json judged(const std::vector<knowledge::instance>& really, const Named& named_at) {
  ordered_json right = ordered_json::array(), none = right, loss = right;
  for (const double window : windows) {
    const knowledge::accuracy a(named_at(window), really);
    right.push_back(a.right(window));
    none.push_back(1 - double(a.predicted()) / double(a.problems()));
    loss.push_back(a.mean_loss());
  }
  return {{"right", right}, {"no_prediction", none}, {"mean_loss", loss}};
}

template <int D>
ordered_json accuracy_of(int count, int rounds) {
  std::vector<knowledge::instance> first, second;
  std::vector<std::string> versions;
  for (const problem_size<D>& size : sizes_of<D>(count)) {
    exchange<D> at(size, "timed");
    first.push_back({.coordinates = size.lengths(), .arms = at.timed(rounds)});
    second.push_back({.coordinates = size.lengths(), .arms = at.timed(rounds)});
    versions.clear();
    for (std::size_t v = 0; v < at.num_versions(); ++v) versions.push_back(at.name_of(v));
  }
  using knowledge::analysis, knowledge::metric;
  const auto by = [&](knowledge::predictor how, metric away) {
    return judged(first, [&, how, away](double window) {
      return leave_one_out(first, how, {.p_max = window, .by = away});
    });
  };
  const auto whatever_window = [&](const named_arms& named) {
    return judged(first, [&](double) { return named; });
  };
  named_arms again;
  const analysis other_run(second);
  for (std::size_t i = 0; i < second.size(); ++i) again.emplace_back(other_run.winner(i));
  const ordered_json accuracy{
      {"closest", by(&analysis::from_closest, metric::lengths)},
      {"similar", by(&analysis::from_similar, metric::lengths)},
      {"closest, logarithms", by(&analysis::from_closest, metric::logarithms)},
      {"similar, logarithms", by(&analysis::from_similar, metric::logarithms)},
      {"curves", whatever_window(leave_one_out(first, &analysis::from_curves))},
      {"sets", whatever_window(from_near(first))},
      {"second run", whatever_window(again)},
      {"best single version",
       whatever_window(named_arms(first.size(), knowledge::best_single_arm(first)))}};
  ordered_json times = ordered_json::array();
  for (const knowledge::instance& i : first) {
    ordered_json of_versions = ordered_json::array();
    for (const auto& t : i.arms) of_versions.push_back(t ? ordered_json(t->seconds) : nullptr);
    times.push_back({{"bytes", i.coordinates}, {"seconds", of_versions}});
  }
  return {{"versions", versions}, {"windows", windows}, {"accuracy", accuracy}, {"times", times}};
}

/// Times exchanges whose size changes after every `iterations` calls: with one set; with one set
/// per size, which starts without knowledge; with the version that runs without railpass; and with
/// the best version of each size, which is known only afterwards.
template <int D>
ordered_json mesh_of(int changes, int iterations, int rounds, std::uint64_t seed) {
  select::random_stream random(seed);
  ordered_json all = ordered_json::array();
  for (int change = 0; change < changes; ++change) {
    problem_size<D> size;
    for (auto& n : size.block) n = between(8, D == 3 ? 64 : 1024, random.uniform());
    if (D == 1) size.width = size.block[0];
    exchange<D> told(size, "told"), afresh(size, "afresh" + std::to_string(change));
    double told_s = 0, afresh_s = 0, first_s = 0;
    for (int i = 0; i < iterations; ++i) {  // in turns
      told_s += seconds_of([&] { told.call(); });
      afresh_s += seconds_of([&] { afresh.call(); });
      first_s += seconds_of([&] { told.call(0); });
    }
    double best_s = INFINITY;
    for (const auto& t : told.timed(rounds))
      if (t) best_s = std::min(best_s, t->seconds);
    all.push_back({{"bytes", size.lengths()},
                   {"told_s", told_s},
                   {"afresh_s", afresh_s},
                   {"first_version_s", first_s},
                   {"best_s", best_s * iterations}});
  }
  return all;
}

int number(const char* text, int least) {
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  if (*end || n < least || n > 1 << 20)
    throw error(std::string("expected a number of ") + std::to_string(least) + " or more, got " +
                text);
  return int(n);
}

template <int D>
ordered_json run(int argc, char** argv) {
  const std::string what = argv[1];
  if (what == "accuracy" && argc == 5)
    return accuracy_of<D>(number(argv[3], 3), number(argv[4], 2));
  if (what == "mesh" && argc == 7)
    return mesh_of<D>(number(argv[3], 1), number(argv[4], 1), number(argv[5], 2),
                      std::uint64_t(number(argv[6], 0)));
  throw error(
      "expected accuracy DIMENSIONS SIZES ROUNDS or "
      "mesh DIMENSIONS CHANGES ITERATIONS ROUNDS SEED");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 0;
  try {
    const int dimensions = argc > 2 ? number(argv[2], 1) : 1;
    if (argc < 3 || dimensions > 3) throw error("expected accuracy or mesh, and 1 to 3 dimensions");
    const ordered_json found = dimensions == 1   ? run<1>(argc, argv)
                               : dimensions == 2 ? run<2>(argc, argv)
                                                 : run<3>(argc, argv);
    if (rank_here() == 0) std::cout << found.dump() << '\n';
  } catch (const std::exception& problem) {
    if (rank_here() == 0) std::cerr << "paper_adcl_halo: " << problem.what() << '\n';
    code = 1;
  }
  MPI_Finalize();
  return code;
}
