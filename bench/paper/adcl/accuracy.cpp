// SPDX-License-Identifier: BSL-1.0
//
// The evaluation of the paper on ADCL's historic learning, for a collective: each of many sizes is
// left out once, and the other sizes predict its best arm. Writes JSON to standard output.
//
//     paper_adcl_accuracy NETWORK RANKS COLLECTIVE SIZES RUNS BENCH
//
// NETWORK: gigabit or infiniband. BENCH: a file of `railpass bench` from a real machine, whose
// noise the simulated times get. RUNS: number of runs, each with different noise.
#include "railpass/knowledge/accuracy.hpp"

#include "lib/files/files.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/predict/predict.hpp"
#include "railpass/select/policy/random.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace railpass;
using namespace railpass::internal;
using nlohmann::ordered_json;

// Two ranks share a node, as the paper's cluster had it.
constexpr int ranks_per_node = 2;
constexpr std::int64_t unit_bytes = 8, smallest_bytes = 64, largest_bytes = 1 << 20,
                       largest_block_bytes = 1 << 16;
// Standard deviation of a run's times from run to run, as a logarithm, besides the noise of calls.
// In five launches on 8 emulated hosts native's ratio to the best arm of all_reduce had an
// interquartile range of 1 % from 64 KiB on, and lay within 3 % at 8 KiB.
constexpr double between_runs = 0.015;
constexpr std::array windows{0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5};

/// The machines gigabit and infiniband of bench/simgrid, with SimGrid's factors of latency and
/// bandwidth by message size. The factors of Ethernet were calibrated on TCP.
machine_model machine_of(const std::string& network) {
  struct factors {
    double from_bytes, latency, bandwidth;
  };
  machine_model m;
  m.same_node.pieces = {{.latency_s = 0.3e-6,
                         .send_overhead_s = 0.1e-6,
                         .receive_overhead_s = 0.1e-6,
                         .gap_s = 0.1e-6,
                         .gap_s_per_byte = 1 / 6e9}};
  if (network == "gigabit") {
    constexpr std::array<factors, 9> of_tcp{{{0, 2.01467, 0.812084},
                                             {257, 1.95341, 0.338112},
                                             {732, 1.9503, 0.341987},
                                             {1426, 1.61075, 0.608902},
                                             {3484, 1.88101, 0.77493},
                                             {5776, 2.18796, 1.08739},
                                             {9376, 2.59299, 0.58729},
                                             {15424, 3.48845, 0.697866},
                                             {65472, 11.6436, 0.940694}}};
    m.across_nodes.eager_limit_bytes = 65536;
    for (const factors& f : of_tcp)
      m.across_nodes.pieces.push_back({.from_bytes = f.from_bytes,
                                       .latency_s = 2 * 12e-6 * f.latency,
                                       .send_overhead_s = 3e-6,
                                       .receive_overhead_s = 3e-6,
                                       .gap_s = 3e-6,
                                       .gap_s_per_byte = 1 / (125e6 * f.bandwidth),
                                       .send_overhead_s_per_byte = 1e-10,
                                       .receive_overhead_s_per_byte = 1e-10});
  } else if (network == "infiniband") {
    m.across_nodes.eager_limit_bytes = 16384;
    for (const bool is_long : {false, true})
      m.across_nodes.pieces.push_back({.from_bytes = is_long ? 16384.0 : 0.0,
                                       .latency_s = 4 * 0.25e-6 * (is_long ? 2.5 : 1),
                                       .send_overhead_s = is_long ? 3e-7 : 2e-7,
                                       .receive_overhead_s = is_long ? 3e-7 : 2e-7,
                                       .gap_s = is_long ? 3e-7 : 2e-7,
                                       .gap_s_per_byte = 1 / (25e9 * 0.95),
                                       .send_overhead_s_per_byte = is_long ? 0 : 2e-11,
                                       .receive_overhead_s_per_byte = is_long ? 0 : 2e-11});
  } else {
    throw error("expected gigabit or infiniband as the network, got " + network);
  }
  return m;
}

/// The noise of calls of one size in a bench, and the number of calls of an arm.
struct noise {
  double spread = 0;  // standard deviation of ln(seconds)
  double p90 = 1;     // 90 % quantile, in medians
  double runs = 0;
};

class measured_noise {
 public:
  explicit measured_noise(const bench_results& from) {
    struct values {
      std::vector<double> spread, p90, runs;
    };
    std::map<std::int64_t, values> by_size;
    for (const bench_result& r : from.results) {
      if (!r.spread_s) continue;
      values& v = by_size[r.bytes];
      v.spread.push_back(*r.spread_s / r.median_s);
      v.p90.push_back(r.p90_s / r.median_s);
      v.runs.push_back(double(r.runs));
    }
    if (by_size.empty()) throw error("expected a bench with the spread of its times");
    for (const auto& [bytes, v] : by_size)
      by_size_[std::log2(double(bytes))] = {median(v.spread), median(v.p90), median(v.runs)};
  }

  noise at(double bytes) const {
    const double x = std::log2(bytes);
    const auto above = by_size_.lower_bound(x);
    if (above == by_size_.begin()) return above->second;
    const auto below = std::prev(above);
    if (above == by_size_.end()) return below->second;
    const double share = (x - below->first) / (above->first - below->first);
    const auto mixed = [&](double noise::*of) {
      return below->second.*of + share * (above->second.*of - below->second.*of);
    };
    return {mixed(&noise::spread), mixed(&noise::p90), mixed(&noise::runs)};
  }

 private:
  std::map<double, noise> by_size_;
};

/// The time of an arm as a run measures it.
knowledge::timing measured(double true_s, const noise& n, select::random_stream& r) {
  const double in_this_run = std::exp(between_runs * r.normal());
  std::vector<double> calls(std::size_t(std::max(3.0, n.runs)));
  for (double& call : calls) {
    call = true_s * in_this_run * std::exp(n.spread * r.normal());
    if (r.uniform() < 0.1) call *= n.p90;
  }
  return {median(calls),
          std::hypot(between_runs, 1.25 * n.spread / std::sqrt(double(calls.size())))};
}

bool has_blocks(collective op) {
  return op == collective::gather || op == collective::scatter || op == collective::all_gather ||
         op == collective::all_to_all;
}

struct cell {
  std::vector<std::string> arms;
  std::vector<double> bytes;               // of a block, where ranks have blocks
  std::vector<double> message_bytes;       // of a call
  std::vector<knowledge::instance> truth;  // by size
};

cell simulated(const std::string& network, int ranks, collective op, int sizes) {
  const machine_model machine = machine_of(network);
  const node_layout nodes = node_layout::blocks(ranks, ranks_per_node);
  const double largest = double(has_blocks(op) ? largest_block_bytes : largest_bytes);
  simulator sim;
  cell c;
  const std::vector<arm> arms = arms_of(op);
  for (const arm& a : arms) c.arms.push_back(name_of(a));
  for (int i = 0; i < sizes; ++i) {
    const double even = smallest_bytes * std::pow(largest / smallest_bytes, i / double(sizes - 1));
    const std::int64_t block = unit_bytes * std::llround(even / unit_bytes);
    const std::int64_t bytes = block * (has_blocks(op) ? ranks : 1);
    const prediction_query q{.op = op,
                             .num_ranks = ranks,
                             .ranks_per_node = ranks_per_node,
                             .bytes = bytes,
                             .unit_bytes = unit_bytes};
    c.bytes.push_back(double(block));
    c.message_bytes.push_back(double(bytes));
    knowledge::instance& at = c.truth.emplace_back();
    at.coordinates = {double(block)};
    for (const arm& a : arms) {
      auto& time = at.arms.emplace_back();
      // With segments as long as the message, an arm sends no segments.
      const auto segments = select::detail::segment_index(a);
      if (a.base->is_native() || !detail::eligible_at(a, q) ||
          (segments && a.values[*segments] >= bytes))
        continue;
      const message_size size{.units = bytes / unit_bytes, .unit_bytes = unit_bytes};
      time = knowledge::timing{simulate_arm(sim, machine, a, nodes, size).time_s, 0};
    }
  }
  return c;
}

std::vector<knowledge::instance> one_run(const cell& c, const measured_noise& noises,
                                         std::uint64_t seed) {
  select::random_stream r(seed);
  std::vector<knowledge::instance> run = c.truth;
  for (std::size_t i = 0; i < run.size(); ++i)
    for (auto& t : run[i].arms)
      if (t) t = measured(t->seconds, noises.at(c.message_bytes[i]), r);
  return run;
}

using named_arms = std::vector<std::optional<int>>;  // by size

/// The best arms of another run of the very same sizes.
named_arms best_arms(const std::vector<knowledge::instance>& run) {
  const knowledge::analysis known(run);
  named_arms best;
  for (std::size_t i = 0; i < run.size(); ++i) best.emplace_back(known.winner(i));
  return best;
}

/// Means over runs, for each window.
class curve {
 public:
  void add(std::size_t window, const knowledge::accuracy& judged) {
    right_[window] += judged.right(windows[window]);
    none_[window] += 1 - double(judged.predicted()) / double(judged.problems());
    loss_[window] += judged.mean_loss();
    runs_ += window == 0 ? 1 : 0;
  }
  ordered_json json() const {
    const auto mean = [&](const auto& sums) {
      auto means = ordered_json::array();
      for (const double sum : sums) means.push_back(std::round(1e4 * sum / runs_) / 1e4);
      return means;
    };
    return {{"right", mean(right_)}, {"no_prediction", mean(none_)}, {"mean_loss", mean(loss_)}};
  }

 private:
  std::array<double, windows.size()> right_{}, none_{}, loss_{};
  double runs_ = 0;
};

int run(int argc, char** argv) {
  if (argc != 7) throw error("expected NETWORK RANKS COLLECTIVE SIZES RUNS BENCH");
  const std::string network = argv[1];
  const auto op = find_collective(argv[3]);
  const int ranks = std::atoi(argv[2]), sizes = std::atoi(argv[4]), runs = std::atoi(argv[5]);
  if (!op || ranks < 2 || sizes < 3 || runs < 1)
    throw error("an argument is not what it should be");
  const measured_noise noises(files::read_bench(argv[6]));
  const cell c = simulated(network, ranks, *op, sizes);

  using knowledge::analysis, knowledge::metric, knowledge::similarity;
  struct variant {
    const char* name;
    knowledge::predictor how;
    metric by;
    similarity similar;
  };
  constexpr auto served = similarity::others_serve_it, serving = similarity::it_serves_others;
  const std::array<variant, 8> variants{
      {{"closest", &analysis::from_closest, metric::lengths, served},
       {"similar", &analysis::from_similar, metric::lengths, served},
       {"closest, Algorithm 1", &analysis::from_closest, metric::lengths, serving},
       {"similar, Algorithm 1", &analysis::from_similar, metric::lengths, serving},
       {"closest, logarithms", &analysis::from_closest, metric::logarithms, served},
       {"similar, logarithms", &analysis::from_similar, metric::logarithms, served},
       {"closest, logarithms, Algorithm 1", &analysis::from_closest, metric::logarithms, serving},
       {"similar, logarithms, Algorithm 1", &analysis::from_similar, metric::logarithms, serving}}};

  // The paper judges predictions by the times that the same run measured. A simulation can also
  // judge by the true times.
  std::map<std::string, curve> by_the_run, by_truth;
  for (int i = 0; i < runs; ++i) {
    const auto known = one_run(c, noises, std::uint64_t(2 * i + 1));
    const auto judge = [&](const std::string& name, std::size_t window, const named_arms& named) {
      by_the_run[name].add(window, {named, known});
      by_truth[name].add(window, {named, c.truth});
    };
    const named_arms from_curves = leave_one_out(known, &analysis::from_curves);
    const named_arms again = best_arms(one_run(c, noises, std::uint64_t(2 * i + 2)));
    const named_arms single(known.size(), knowledge::best_single_arm(known));
    for (std::size_t w = 0; w < windows.size(); ++w) {
      for (const variant& v : variants)
        judge(v.name, w,
              leave_one_out(known, v.how, {.p_max = windows[w], .by = v.by, .similar = v.similar}));
      judge("curves", w, from_curves);
      judge("second run", w, again);
      judge("best single arm", w, single);
    }
  }
  ordered_json found;
  for (const auto& [name, its] : by_the_run) found["judged_by_the_run"][name] = its.json();
  for (const auto& [name, its] : by_truth) found["judged_by_truth"][name] = its.json();
  std::cout << ordered_json{{"network", network},    {"ranks", ranks},   {"collective", argv[3]},
                            {"arms", c.arms.size()}, {"sizes", sizes},   {"runs", runs},
                            {"windows", windows},    {"accuracy", found}}
                   .dump(1)
            << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& problem) {
    std::cerr << "paper_adcl_accuracy: " << problem.what() << '\n';
    return 1;
  }
}
