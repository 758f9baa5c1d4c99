// SPDX-License-Identifier: BSL-1.0
#include "lib/libraries/rules.hpp"

#include "collectives/registry.hpp"
#include "lib/libraries/library.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace railpass::internal::libraries {
namespace {

// An algorithm that may have a rule.
struct candidate {
  own_algorithm algorithm;
  double ratio;  // to the default's time
};
using candidates = std::map<std::string, candidate>;  // by the arm's name
// By size.
using curve = std::map<std::int64_t, candidates>;

struct sentences {
  std::vector<std::string> all;
  void add(const std::string& one) {
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
};

candidates both(const candidates& a, const candidates& b) {
  candidates result;
  for (const auto& [arm, one] : a)
    if (const auto other = b.find(arm); other != b.end())
      result.emplace(arm, one.ratio > other->second.ratio ? one : other->second);
  return result;
}

// A size, or a range of sizes of which the curve has none.
candidates at(const curve& c, std::int64_t from, std::int64_t to) {
  if (const auto exact = c.find(from); exact != c.end() && from == to) return exact->second;
  const auto above = c.upper_bound(to);
  if (above == c.begin() || above == c.end()) return {};
  return both(std::prev(above)->second, above->second);
}

bool has_enough_launches(const bench_result& r) {
  return !r.launch_ratios.empty() &&
         bounds_of_median(r.launch_ratios).confidence >= least_confidence;
}

void check(const named_bench& file, const named_bench& first) {
  const auto fail = [&](const std::string& what) { return error(file.name + ": " + what); };
  if (file.bench.machine_id.mpi_library != first.bench.machine_id.mpi_library)
    throw fail("measured with '" + file.bench.machine_id.mpi_library + "', but " + first.name +
               " with '" + first.bench.machine_id.mpi_library + "'");
  const bench_result* most = nullptr;  // of most launches
  for (const bench_result& r : file.bench.results) {
    if (!is_own_algorithm(r.arm)) continue;
    if (!r.ratio_to_native)
      throw fail("results: no time of the arm native beside '" + r.arm +
                 "'; run railpass bench --arms native,native:all");
    if (!most || r.launch_ratios.size() > most->launch_ratios.size()) most = &r;
  }
  if (!most)
    throw fail(
        "results: no time of the MPI library's own algorithms; run railpass bench --arms "
        "native,native:all");
  if (!has_enough_launches(*most))
    throw fail("results: too few launches (" +
               std::to_string(std::max<std::size_t>(1, most->launch_ratios.size())) +
               "); a rule needs at least 6: run railpass bench --launches 6");
}

bool passes(const bench_result& r) {
  return is_own_algorithm(r.arm) && has_enough_launches(r) && *r.ratio_to_native <= largest_ratio &&
         bounds_of_median(r.launch_ratios).bounds.high < 1;
}

// Bench leaves algorithms out for which a launch has no time. They are then missing at a size
// although a smaller size has them, or have too few launches.
void note_missing(const named_bench& file, collective op, sentences& left_out) {
  struct arms {
    std::set<std::string> seen, enough;
  };
  std::map<std::int64_t, arms> sizes;
  for (const bench_result& r : file.bench.results) {
    if (r.collective != name_of(op) || !is_own_algorithm(r.arm)) continue;
    sizes[r.bytes].seen.insert(r.arm);
    if (has_enough_launches(r)) sizes[r.bytes].enough.insert(r.arm);
  }
  std::set<std::string> known;
  for (const auto& [bytes, here] : sizes) {
    known.insert(here.seen.begin(), here.seen.end());
    if (const std::size_t missing = known.size() - here.enough.size(); missing > 0)
      left_out.add(std::string(name_of(op)) + " of " + format_bytes(bytes) + " on " +
                   std::to_string(file.bench.num_ranks) + " ranks by " + std::to_string(missing) +
                   " more arms: bench had time for them in too few launches (see --budget)");
  }
}

// All sizes of one collective in one file.
curve curve_of(const named_bench& file, collective op, const rule_filter& why_not,
               sentences& left_out) {
  curve sizes;
  const std::string name(name_of(op));
  for (const bench_result& r : file.bench.results) {
    if (r.collective != name) continue;
    candidates& here = sizes[r.bytes];
    if (!passes(r)) continue;
    const own_algorithm* algorithm = find_algorithm(file.bench, name, r.arm);
    if (!algorithm)
      throw error(file.name + ": own_algorithms: expected the number of '" + r.arm + "' of " +
                  name);
    if (const std::string reason = why_not(op, *algorithm, file.bench); !reason.empty())
      left_out.add(name + " by " + algorithm->name + ": " + reason);
    else
      here.emplace(r.arm, candidate{*algorithm, *r.ratio_to_native});
  }
  return sizes;
}

std::vector<rule> rules_of(const std::vector<curve>& curves) {
  std::set<std::int64_t> sizes;
  for (const curve& c : curves)
    for (const auto& [bytes, here] : c) sizes.insert(bytes);
  std::vector<rule> rules;
  const auto add = [&](std::int64_t from, std::int64_t to) {
    candidates some = at(curves.front(), from, to);
    for (const curve& c : curves) some = both(some, at(c, from, to));
    const auto best =
        std::ranges::min_element(some, {}, [](const auto& one) { return one.second.ratio; });
    if (best == some.end()) return;
    const auto& [algorithm, ratio] = best->second;
    const std::int64_t segment_bytes = parse_own_arm(best->first).segment_bytes;
    if (!rules.empty() && rules.back().to_bytes == from - 1 &&
        rules.back().algorithm == algorithm && rules.back().segment_bytes == segment_bytes) {
      rules.back().to_bytes = to;
      rules.back().ratio = std::max(rules.back().ratio, ratio);
    } else {
      rules.push_back({from, to, algorithm, segment_bytes, ratio});
    }
  };
  for (auto size = sizes.begin(); size != sizes.end(); ++size) {
    add(*size, *size);
    if (const auto next = std::next(size); next != sizes.end() && *next > *size + 1)
      add(*size + 1, *next - 1);
  }
  return rules;
}

}  // namespace

const own_algorithm* find_algorithm(const bench_results& bench, const std::string& collective,
                                    const std::string& arm) {
  const std::string name = parse_own_arm(arm).name;
  const auto found = std::ranges::find_if(bench.own_algorithms, [&](const own_algorithm& a) {
    return a.collective == collective && a.name == name;
  });
  return found == bench.own_algorithms.end() ? nullptr : &*found;
}

rule_set rules_from(std::span<const named_bench> files, const rule_filter& why_not) {
  rule_set all;
  sentences left_out;
  std::map<int, std::vector<const named_bench*>> by_ranks;
  for (const named_bench& file : files) {
    check(file, files.front());
    by_ranks[file.bench.num_ranks].push_back(&file);
    all.mpi_library = file.bench.machine_id.mpi_library;
    all.largest_num_hosts = std::max(all.largest_num_hosts, file.bench.machine_id.num_hosts);
    all.sources.push_back(file.name + ": " + std::to_string(file.bench.num_ranks) + " ranks, " +
                          std::to_string(file.bench.ranks_per_node) + " per node, " +
                          file.bench.measured_at);
  }
  for (const collective op : all_collectives) {
    rules_of_collective of{.op = op};
    for (const auto& [num_ranks, same] : by_ranks) {
      std::vector<curve> curves;
      for (const named_bench* file : same) {
        curve sizes = curve_of(*file, op, why_not, left_out);
        if (!sizes.empty()) curves.push_back(std::move(sizes));
        note_missing(*file, op, left_out);
      }
      if (curves.empty()) continue;
      of.ranks.push_back({.num_ranks = num_ranks, .rules = rules_of(curves)});
      if (of.ranks.back().rules.empty())
        left_out.add(std::string(name_of(op)) + " on " + std::to_string(num_ranks) +
                     " ranks: no algorithm was shown to be faster than the default");
    }
    std::erase_if(of.ranks, [](const rules_of_ranks& r) { return r.rules.empty(); });
    if (!of.ranks.empty()) all.collectives.push_back(std::move(of));
  }
  all.left_out = std::move(left_out.all);
  return all;
}

}  // namespace railpass::internal::libraries
