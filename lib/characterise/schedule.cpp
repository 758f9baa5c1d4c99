// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/schedule.hpp"

#include "lib/measure/wrong_results.hpp"
#include "railpass/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace railpass::internal::characterise {
namespace {

// Contenders, at each size: the fastest arms of each group of rivals.
constexpr std::size_t contenders_of_a_group = 2;
constexpr double contending_ratio = 1.3;
// A screening measures dozens of arms. If the time is not enough for any, a second screening takes
// twice as long.
constexpr double screening_weight = 1.5;
constexpr int most_screenings = 2;
// The coarse grid is to take about this share of the time.
constexpr double coarse_share = 0.5;
constexpr double least_cell_s = 0.01, most_cell_s = 1, least_launch_s = 1;
// Sizes nearer than that need no size in between.
constexpr double smallest_step = 1.5;
// A jump of the time without a change of the best arm is worth as much as this gain.
constexpr double value_of_a_jump = 0.1;
constexpr double least_value = 0.02;
constexpr std::size_t most_refined_sizes = 4;

// Sizes that share contests. The best arms of short messages would take long for long messages.
constexpr std::size_t num_groups = 3;
std::size_t group_of(std::int64_t size) { return size <= 4096 ? 0 : size <= 131072 ? 1 : 2; }

enum class arm_kind { native, own, ours };

arm_kind kind_of(const std::string& arm) {
  return arm == "native"         ? arm_kind::native
         : is_own_algorithm(arm) ? arm_kind::own
                                 : arm_kind::ours;
}

// The arms of a launch beside native: the library's algorithms, the arms of railpass, or the
// fastest of both.
enum class launch_kind { own, ours, contest };

const std::vector<std::string>& screening_arms(launch_kind kind) {
  static const std::vector<std::string> own{"native", "native:all", "native:all:16KiB",
                                            "native:all:128KiB"};
  static const std::vector<std::string> ours{"native", "all"};
  return kind == launch_kind::own ? own : ours;
}

launch_kind kind_of(const launch_request& r) {
  for (const launch_kind kind : {launch_kind::own, launch_kind::ours})
    if (r.arms == screening_arms(kind)) return kind;
  return launch_kind::contest;
}

// An arm of one cell, with a value of each launch that measured it.
struct arm_times {
  std::vector<double> medians_s{}, ratios{};
  bool is_for_rules = false;
};
using named_times = std::pair<const std::string, arm_times>;

// Groups of arms that compete with native: for rules, all of the library's own, for plans.
enum class rivals { for_rules, own, ours };
constexpr std::array all_rivals{rivals::for_rules, rivals::own, rivals::ours};

bool belongs_to(rivals group, const named_times& one) {
  if (group == rivals::for_rules) return one.second.is_for_rules;
  return kind_of(one.first) == (group == rivals::own ? arm_kind::own : arm_kind::ours);
}

struct cell {
  bool is_coarse = false;
  std::array<int, 3> launches{};  // by launch_kind
  std::map<std::string, arm_times> arms{};

  int number(launch_kind kind) const { return launches[std::size_t(kind)]; }

  bool has(arm_kind kind) const {
    return std::ranges::any_of(arms,
                               [&](const named_times& one) { return kind_of(one.first) == kind; });
  }

  // Arms that lost the screening have one time only, which may be lucky.
  bool counts(const arm_times& times) const {
    return number(launch_kind::contest) < 2 || times.medians_s.size() > 1;
  }

  // The fastest arm among native and its rivals; null without a measurement.
  const named_times* best(rivals group) const {
    const named_times* found = nullptr;
    for (const named_times& one : arms)
      if ((one.first == "native" || belongs_to(group, one)) && counts(one.second) &&
          (!found || median(one.second.ratios) < median(found->second.ratios)))
        found = &one;
    return found;
  }

  // 1 - (the time of the fastest rival / native's); 0 if native is faster.
  double gain(rivals group) const {
    const named_times* const fastest = best(group);
    return fastest ? 1 - median(fastest->second.ratios) : 0;
  }
  bool decides(rivals group) const { return 1 - gain(group) <= deciding_ratio; }
  bool decides() const {
    return std::ranges::any_of(all_rivals, [&](rivals group) { return decides(group); });
  }

  // The width of the interval of the fastest arm's ratio to native.
  double width(rivals group) const {
    const named_times* const fastest = best(group);
    if (!fastest || fastest->second.ratios.size() < 2) return 0;
    const interval likely = bounds_of_median(fastest->second.ratios).bounds;
    return likely.high - likely.low;
  }
};

// A launch that a cell needs. Lower levels come first.
struct need {
  launch_kind kind;
  int level;
  std::size_t group = 0;  // of a contest
  friend bool operator==(const need&, const need&) = default;
};

std::optional<need> need_of(std::int64_t size, const cell& c, bool own_algorithms) {
  const int contests = c.number(launch_kind::contest);
  if (c.is_coarse) {
    const auto screening = [&](launch_kind kind, arm_kind arms, int most) -> std::optional<need> {
      if (c.number(kind) >= most || (c.number(kind) > 0 && c.has(arms))) return std::nullopt;
      return need{kind, c.number(kind)};
    };
    for (const int most : {1, most_screenings}) {
      if (own_algorithms)
        if (const auto own = screening(launch_kind::own, arm_kind::own, most)) return own;
      if (const auto ours = screening(launch_kind::ours, arm_kind::ours, most)) return ours;
    }
  }
  const bool is_screened = c.is_coarse && (!own_algorithms || c.has(arm_kind::own)) &&
                           c.has(arm_kind::ours) && contests == 0;
  const int wanted = c.decides() ? deciding_launches : is_screened ? 0 : first_launches;
  if (contests >= wanted) return std::nullopt;
  return need{launch_kind::contest, most_screenings + contests, group_of(size)};
}

// A collective on a number of ranks.
struct curve {
  collective op{};
  int num_ranks = 0;
  int failures = 0;  // in a row, at the end
  std::string last_failure{};
  std::map<std::int64_t, cell> cells{};  // by the size that was asked for
  std::array<std::set<std::string>, num_groups> contenders{};
  std::set<std::string> wrong_arms{};  // gave a wrong result in any launch

  bool has(arm_kind kind) const {
    return std::ranges::any_of(cells, [&](const auto& one) { return one.second.has(kind); });
  }
  bool is_left_out() const { return failures >= 2; }
  bool is_measured() const {
    return std::ranges::any_of(cells, [](const auto& one) { return !one.second.arms.empty(); });
  }
};

// The bench rounds sizes up; a barrier has its own.
std::int64_t measured_bytes(const bench_results& results, std::string_view op, std::int64_t size) {
  std::int64_t found = -1, largest = 0;
  for (const bench_result& r : results.results) {
    if (r.collective != op) continue;
    largest = std::max(largest, r.bytes);
    if (r.bytes >= size && (found < 0 || r.bytes < found)) found = r.bytes;
  }
  return found < 0 ? largest : found;
}

std::array<std::set<std::string>, num_groups> contenders_in(
    const std::map<std::int64_t, cell>& cells) {
  std::array<std::set<std::string>, num_groups> all;
  for (const auto& [size, c] : cells)
    for (const rivals group : all_rivals) {
      std::vector<std::pair<double, std::string>> fastest;
      for (const named_times& one : c.arms)
        if (belongs_to(group, one)) fastest.emplace_back(median(one.second.ratios), one.first);
      std::ranges::sort(fastest);
      for (std::size_t i = 0; i < std::min(fastest.size(), contenders_of_a_group); ++i)
        if (fastest[i].first <= contending_ratio * fastest[0].first)
          all[group_of(size)].insert(fastest[i].second);
    }
  return all;
}

void add(const question& q, curve& to, const launch_record& record) {
  if (!record.failure.empty()) {
    ++to.failures;
    to.last_failure = record.failure;
    return;
  }
  to.failures = 0;
  const launch_kind kind = kind_of(record.request);
  const std::string_view name = name_of(to.op);
  for (const std::int64_t size : record.request.sizes) {
    cell& c = to.cells[size];
    ++c.launches[std::size_t(kind)];
    const std::int64_t bytes = measured_bytes(record.results, name, size);
    for (const bench_result& r : record.results.results) {
      if (r.collective != name || r.bytes != bytes || !r.ratio_to_native ||
          to.wrong_arms.contains(r.arm))
        continue;
      arm_times& times = c.arms[r.arm];
      if (times.ratios.empty())
        times.is_for_rules = is_own_algorithm(r.arm) && q.rules_take(to.op, r.arm, record.results);
      times.medians_s.push_back(r.median_s);
      times.ratios.push_back(*r.ratio_to_native);
    }
  }
  // Contests change no contender, so that each contender gets all contests.
  if (kind == launch_kind::contest) return;
  to.contenders = contenders_in(to.cells);
  for (std::size_t group = 1; group < num_groups; ++group)
    if (to.contenders[group].empty()) to.contenders[group] = to.contenders[group - 1];
}

std::vector<curve> curves_of(const question& q, std::span<const launch_record> so_far) {
  std::vector<curve> all;
  for (const int ranks : q.ranks)
    for (const collective op : q.ops) {
      curve& c = all.emplace_back(curve{.op = op, .num_ranks = ranks});
      for (const std::int64_t size : coarse_sizes) c.cells[size].is_coarse = true;
      std::vector<const launch_record*> launches;
      for (const launch_record& record : so_far)
        if (record.request.num_ranks == ranks &&
            std::ranges::find(record.request.ops, op) != record.request.ops.end())
          launches.push_back(&record);
      for (const launch_record* record : launches)
        for (const measure::wrong_arm& wrong : measure::wrong_arms(record->results))
          if (wrong.collective == name_of(op)) c.wrong_arms.insert(wrong.arm);
      for (const launch_record* record : launches) add(q, c, *record);
    }
  return all;
}

double cell_s(const question& q) {
  const double cells = double(q.ranks.size() * q.ops.size() * coarse_sizes.size());
  const double weight = 2 * screening_weight + deciding_launches;
  return std::clamp(coarse_share * q.budget_s / (cells * weight), least_cell_s, most_cell_s);
}

// A launch of these curves, which have one number of ranks, at sizes of one group for a contest.
// `weight`: of a cell's time.
launch_request launch_of(const question& q, const std::vector<const curve*>& curves,
                         const std::set<std::int64_t>& sizes, launch_kind kind, double weight = 1) {
  launch_request next{.num_ranks = curves.front()->num_ranks,
                      .sizes = {sizes.begin(), sizes.end()}};
  std::set<std::string> contenders;
  for (const curve* c : curves) {
    next.ops.push_back(c->op);
    const auto& here = c->contenders[group_of(*sizes.begin())];
    contenders.insert(here.begin(), here.end());
  }
  if (kind == launch_kind::contest) {
    next.arms = {"native"};
    next.arms.insert(next.arms.end(), contenders.begin(), contenders.end());
  } else {
    next.arms = screening_arms(kind);
  }
  next.budget_s =
      std::max(least_launch_s, weight * cell_s(q) * double(next.ops.size() * next.sizes.size()));
  return next;
}

// The cells that need a launch of the lowest level. Collectives on one number of ranks share the
// launch, as each start takes time.
std::optional<launch_request> needed_launch(const question& q, const std::vector<curve>& curves) {
  std::optional<need> first;
  const auto each_need = [&](const curve& c, auto work) {
    if (c.is_left_out()) return;
    for (const auto& [size, one] : c.cells)
      if (const auto needs = need_of(size, one, q.own_algorithms)) work(size, *needs);
  };
  for (const curve& c : curves)
    each_need(c, [&](std::int64_t, const need& needs) {
      if (!first || needs.level < first->level) first = needs;
    });
  if (!first) return std::nullopt;
  std::vector<const curve*> together;
  std::set<std::int64_t> sizes;
  for (const curve& c : curves) {
    if (!together.empty() && (c.num_ranks != together.front()->num_ranks || c.failures > 0))
      continue;
    bool needs_it = false;
    each_need(c, [&](std::int64_t size, const need& needs) {
      if (needs != *first) return;
      sizes.insert(size);
      needs_it = true;
    });
    if (needs_it) together.push_back(&c);
    if (needs_it && c.failures > 0) break;  // alone
  }
  const double weight =
      first->kind == launch_kind::contest ? 1 : screening_weight * double(1 << first->level);
  return launch_of(q, together, sizes, first->kind, weight);
}

double native_s(const cell& c) {
  const auto native = c.arms.find("native");
  return native == c.arms.end() ? 0 : median(native->second.medians_s);
}

bool has_same_best(rivals group, const cell& a, const cell& b) {
  const named_times *const one = a.best(group), *const other = b.best(group);
  return one && other && one->first == other->first;
}

// Native's time grows more than the size, or falls.
bool jumps(const cell& a, const cell& b, double step) {
  const double factor = native_s(b) / native_s(a);
  return factor > 1.2 * step || factor < 0.9;
}

// The value of another launch of a cell: the gain of rules or of plans that may be wrong.
double value_of_launch(const cell& c) {
  double value = 0;
  for (const rivals group : all_rivals)
    if (c.decides(group)) value = std::max(value, std::min(c.gain(group), c.width(group)));
  return value;
}

// The value of a size between two neighbours, per octave: the gain that may be missed.
double value_between(const cell& a, const cell& b, double step) {
  const bool jump = jumps(a, b, step);
  double value = jump ? value_of_a_jump : 0;
  for (const rivals group : all_rivals)
    if (jump || !has_same_best(group, a, b))
      value = std::max({value, a.gain(group), b.gain(group)});
  return value;
}

std::vector<std::pair<double, std::int64_t>> values_of(const curve& c, bool adds_sizes) {
  std::vector<std::pair<double, std::int64_t>> values;
  for (auto a = c.cells.begin(); a != c.cells.end(); ++a) {
    const cell& here = a->second;
    if (here.arms.empty()) continue;
    if (here.number(launch_kind::contest) < most_launches)
      values.emplace_back(value_of_launch(here), a->first);
    const auto b = std::next(a);
    if (!adds_sizes || b == c.cells.end() || b->second.arms.empty()) continue;
    const double step = double(b->first) / double(a->first);
    if (step < smallest_step) continue;
    // Whole numbers of doubles.
    const auto between = std::int64_t(std::sqrt(double(a->first) * double(b->first)) / 8 + 1) * 8;
    if (between > a->first && between < b->first)
      values.emplace_back(value_between(here, b->second, step) * std::log2(step), between);
  }
  std::erase_if(values, [](const auto& v) { return v.first < least_value; });
  std::ranges::stable_sort(values, std::greater{}, &std::pair<double, std::int64_t>::first);
  if (values.size() > most_refined_sizes) values.resize(most_refined_sizes);
  return values;
}

std::optional<launch_request> refining_launch(const question& q, const std::vector<curve>& curves,
                                              bool adds_sizes) {
  const curve* most = nullptr;
  double most_value = 0;
  std::vector<std::pair<double, std::int64_t>> chosen;
  for (const curve& c : curves) {
    if (c.is_left_out() || c.op == collective::barrier) continue;
    const auto values = values_of(c, adds_sizes);
    double sum = 0;
    for (const auto& [value, size] : values) sum += value;
    if (sum <= most_value) continue;
    most = &c;
    most_value = sum;
    chosen = values;
  }
  if (!most) return std::nullopt;
  std::set<std::int64_t> sizes;
  for (const auto& [value, size] : chosen)
    if (group_of(size) == group_of(chosen.front().second)) sizes.insert(size);
  return launch_of(q, {most}, sizes, launch_kind::contest);
}

}  // namespace

double estimated_s(const launch_request& next, std::span<const launch_record> so_far) {
  constexpr double start_s = 1;
  std::vector<double> factors;
  for (const launch_record& r : so_far)
    if (r.failure.empty() && r.request.num_ranks == next.num_ranks)
      factors.push_back(r.wall_s / (r.request.budget_s + start_s));
  return (next.budget_s + start_s) * (factors.empty() ? 1 : median(factors));
}

std::optional<launch_request> next_launch(const question& q,
                                          std::span<const launch_record> so_far) {
  const std::vector<curve> curves = curves_of(q, so_far);
  double left_s = q.budget_s;
  for (const launch_record& r : so_far) left_s -= r.wall_s;
  std::optional<launch_request> next = needed_launch(q, curves);
  if (!next) {
    next = refining_launch(q, curves, true);
    // A size with fewer launches would decide nothing.
    if (next && deciding_launches * estimated_s(*next, so_far) > left_s)
      next = refining_launch(q, curves, false);
  }
  // A launch that would end late is made if most of it fits.
  if (next && !so_far.empty() && estimated_s(*next, so_far) / 2 > left_s) return std::nullopt;
  return next;
}

std::vector<std::string> left_out(const question& q, std::span<const launch_record> so_far) {
  std::vector<std::string> sentences;
  std::map<int, std::string> unmeasured;
  const std::vector<curve> curves = curves_of(q, so_far);
  for (const curve& c : curves) {
    const std::string name(name_of(c.op));
    if (c.is_left_out())
      sentences.push_back(name + " on " + std::to_string(c.num_ranks) +
                          " ranks: " + (c.is_measured() ? "measured no further" : "left out") +
                          ", as two launches in a row failed, the last: " + c.last_failure);
    else if (!c.is_measured())
      unmeasured[c.num_ranks] += (unmeasured[c.num_ranks].empty() ? "" : ", ") + name;
  }
  for (const auto& [ranks, names] : unmeasured)
    sentences.push_back(
        names + " on " + std::to_string(ranks) +
        " ranks: not measured yet; run the command again, with a larger --budget if its "
        "time is over");
  for (const int ranks : q.ranks) {
    const auto here = [&](const curve& c) { return c.num_ranks == ranks; };
    const auto measured = [&](const curve& c) { return here(c) && c.is_measured(); };
    const auto with_ours = [&](const curve& c) { return here(c) && c.has(arm_kind::ours); };
    if (std::ranges::any_of(curves, measured) && std::ranges::none_of(curves, with_ours))
      sentences.push_back("railpass on " + std::to_string(ranks) +
                          " ranks: no algorithm of railpass has a time; `railpass doctor` names "
                          "settings that keep railpass from use, and a larger --budget gives more "
                          "algorithms a time");
  }
  return sentences;
}

}  // namespace railpass::internal::characterise
