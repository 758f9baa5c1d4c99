// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/bench.hpp"

#include "collectives/registry.hpp"
#include "lib/files/files.hpp"
#include "lib/measure/carrier.hpp"
#include "lib/measure/wrong_results.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/error.hpp"
#include "railpass/select/belief/prior.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace railpass::internal::measure {
namespace {

std::optional<arm> arm_named(collective op, const std::string& name) {
  try {
    return parse_arm(op, name);
  } catch (const error&) {
    return std::nullopt;  // it is another collective's
  }
}

// A cell's share of the time. A long message needs more time, for each arm to have a turn, although
// a short one gets more repetitions.
double weight_of(const cell_request& cell) {
  constexpr std::int64_t short_bytes = 4096;
  return std::sqrt(double(std::max(short_bytes, cell.bytes)));
}

// The MPI library's own algorithms that `arms` name.
std::vector<contestant> own_contestants(const std::vector<std::string>& arms, collective op,
                                        std::int64_t bytes, const own_algorithms& own) {
  std::vector<contestant> all;
  if (!own.can_force(arms)) return all;
  for (const std::string& name : arms) {
    if (!is_own_algorithm(name)) continue;
    const libraries::own_arm wanted = libraries::parse_own_arm(name);
    // A segment as long as the message is the unsegmented algorithm again.
    if (wanted.segment_bytes > 0 && (wanted.segment_bytes >= bytes || !own.has_segments(op)))
      continue;
    for (const own_algorithm& a : own.named(op, wanted)) {
      std::string label = libraries::name_of({a.name, wanted.segment_bytes});
      if (std::ranges::find(all, label, &contestant::label) != all.end()) continue;
      all.push_back({.what = contestant::kind::own,
                     .label = std::move(label),
                     .own = a,
                     .segment_bytes = wanted.segment_bytes,
                     .asked_for = wanted.name != "all"});
    }
  }
  return all;
}

}  // namespace

std::vector<contestant> contestants_of(const std::vector<std::string>& arms, collective op,
                                       std::int64_t bytes, const job& j, const profile* knowledge,
                                       const own_algorithms* own) {
  const std::int64_t unit_bytes = unit_bytes_of(op, bytes);
  // Where only pairs of ranks know lengths, none decides.
  const bool has_size = describe(op).lengths != block_lengths::of_pair;
  const eligibility here{.num_ranks = j.num_ranks,
                         .units = has_size ? bytes / unit_bytes : 0,
                         .commutative = true,
                         .shared_memory = true,
                         .single_copy = j.num_nodes() == 1,
                         .nodes = j.nodes(),
                         .caches = j.caches()};
  const machine_model machine = knowledge ? knowledge->machine : select::generic_machine();
  const auto predicted_s = [&](const arm& a) {
    const select::prior_query q{.machine = machine,
                                .knowledge = knowledge,
                                .key = {.op = op, .size_class = select::size_class_of(bytes)},
                                .num_ranks = j.num_ranks,
                                .ranks_per_node = j.most_ranks_per_node(),
                                .ranks_per_cache = here.caches.most_ranks_or_0(),
                                .unit_bytes = double(unit_bytes),
                                .bytes = double(std::max<std::int64_t>(1, bytes))};
    return std::exp(select::prior_of(a, 0, q).log_seconds);
  };
  std::vector<contestant> all;
  const auto add_arm = [&](const arm& a, const std::string& label, bool asked_for) {
    if (!a.base->is_native() && eligible(*a.base, here))
      all.push_back({.what = contestant::kind::pinned,
                     .label = label,
                     .pinned = a,
                     .predicted_s = predicted_s(a),
                     .asked_for = asked_for});
  };
  const auto wants = [&](const char* name) {
    return arms.empty() || std::find(arms.begin(), arms.end(), name) != arms.end();
  };
  if (wants("all"))
    for (const arm& a : arms_of(op)) {
      // A segment as long as the message is the unsegmented arm again.
      const auto& parameters = a.base->parameter_list;
      bool repeated = false;
      for (int i = 0; i < a.base->num_parameters(); ++i)
        repeated = repeated || (parameters[std::size_t(i)].name == segment_bytes_parameter.name &&
                                a.values[std::size_t(i)] >= std::max<std::int64_t>(1, bytes) &&
                                parameters[std::size_t(i)].values[0] == 0);
      if (!repeated) add_arm(a, name_of(a), false);
    }
  else
    for (const std::string& name : arms)
      if (const auto a = arm_named(op, name)) add_arm(*a, name, true);
  std::stable_sort(all.begin(), all.end(), [](const contestant& a, const contestant& b) {
    return a.predicted_s < b.predicted_s;
  });
  if (own) {
    const std::vector<contestant> more = own_contestants(arms, op, bytes, *own);
    all.insert(all.begin(), more.begin(), more.end());
  }
  if (wants("tuned"))
    all.insert(all.begin(), {.what = contestant::kind::tuned, .label = "tuned", .asked_for = true});
  if (wants("native"))
    all.insert(all.begin(),
               {.what = contestant::kind::native, .label = "native", .asked_for = true});
  return all;
}

bench_results begin_bench(const job& j) {
  // The bench measures first runs, and no program can use its results as knowledge.
  if (process* const own = process::get()) own->keep_no_knowledge();
  bench_results all;
  all.machine_id = machine_marks(j.num_nodes());
  { const carrier must_open(all.machine_id.rails); }  // the arms' messages would be MPI's
  all.measured_at = files::utc_now();
  all.num_ranks = j.num_ranks;
  all.ranks_per_node = j.most_ranks_per_node();
  all.ranks_per_cache = j.caches().most_ranks_or_0();
  return all;
}

void measure_cells(const job& j, std::vector<cell_request> cells, double budget_s,
                   bench_results& all, const progress_report& progress,
                   const std::function<void(const cell_request&, const cell_result&)>& finished) {
  const double begin_s = steady_clock_s();
  const auto number = double(cells.size());
  double done = 0, weight_left = 0;
  for (const cell_request& cell : cells) weight_left += weight_of(cell);
  for (cell_request& cell : cells) {
    const double left_s = agreed(budget_s - (steady_clock_s() - begin_s));
    cell.budget_s = std::max(left_s, 0.05 * budget_s) * weight_of(cell) / weight_left;
    weight_left -= weight_of(cell);
    const cell_result result =
        measure_cell(j, cell, [&](double fraction, const std::string& doing) {
          progress((done + std::min(1.0, fraction)) / number, doing);
        });
    done += 1;
    all.results.insert(all.results.end(), result.rows.begin(), result.rows.end());
    all.learning.insert(all.learning.end(), result.learning.begin(), result.learning.end());
    for (const contestant& c : cell.contestants)
      if (c.what == contestant::kind::own &&
          std::ranges::find(all.own_algorithms, c.own) == all.own_algorithms.end())
        all.own_algorithms.push_back(c.own);
    const std::string key = std::string(name_of(cell.op)) + "/" + std::to_string(cell.bytes) + "/";
    all.notes[key + "repetitions"] = std::to_string(result.repetitions);
    if (cell.round_time) all.notes[key + "late_rounds"] = std::to_string(result.late_rounds);
    if (!result.tuned_arm.empty()) all.notes[key + "tuned_arm"] = result.tuned_arm;
    for (const auto& [label, why] : result.left_out)
      all.notes[left_out_note(std::string(name_of(cell.op)), cell.bytes, label)] = why;
    finished(cell, result);
  }
}

}  // namespace railpass::internal::measure
