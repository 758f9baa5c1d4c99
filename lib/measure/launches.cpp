// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/launches.hpp"

#include "lib/measure/wrong_results.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace railpass::internal::measure {
namespace {

/// The launches' parts that belong to the same cell, in the order of first appearance.
template <class Cell, class Key>
std::vector<std::vector<const Cell*>> cells_of(std::span<const bench_results> launches,
                                               std::vector<Cell> bench_results::*list, Key key) {
  std::vector<std::vector<const Cell*>> cells;
  for (const bench_results& b : launches)
    for (const Cell& c : b.*list) {
      const auto same = std::ranges::find_if(
          cells, [&](const auto& others) { return key(*others.front()) == key(c); });
      if (same == cells.end())
        cells.push_back({&c});
      else
        same->push_back(&c);
    }
  return cells;
}

template <class Cell, class Field>
std::vector<double> values(const std::vector<const Cell*>& cells, Field field) {
  std::vector<double> all;
  for (const Cell* c : cells) all.push_back(c->*field);
  return all;
}

/// Empty if a launch has none.
std::vector<double> values(const std::vector<const bench_result*>& rows,
                           std::optional<double> bench_result::*field) {
  std::vector<double> all;
  for (const bench_result* r : rows) {
    if (!(r->*field)) return {};
    all.push_back(*(r->*field));
  }
  return all;
}

/// Nothing if the launches are too few for 95 % confidence.
std::optional<interval> likely_median(const std::vector<double>& ratios) {
  const median_bounds likely = bounds_of_median(ratios);
  return likely.confidence >= 0.95 ? std::optional(likely.bounds) : std::nullopt;
}

/// Every word once.
std::string together(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (auto word = words.begin(); word != words.end(); ++word)
    if (std::find(words.begin(), word, *word) == word)
      text += (word == words.begin() ? "" : std::string(between)) + *word;
  return text;
}

bench_result row_over(const std::vector<const bench_result*>& rows) {
  bench_result over = *rows.front();
  over.launch_medians_s = values(rows, &bench_result::median_s);
  over.median_s = median(over.launch_medians_s);
  over.p90_s = median(values(rows, &bench_result::p90_s));
  over.runs = 0;
  for (const bench_result* r : rows) over.runs += r->runs;
  if (const auto spreads = values(rows, &bench_result::spread_s); !spreads.empty())
    over.spread_s = std::hypot(median(spreads), robust_spread(over.launch_medians_s));

  over.launch_ratios = values(rows, &bench_result::ratio_to_native);
  over.ratio_to_native = over.ratio_low = over.ratio_high = std::nullopt;
  if (!over.launch_ratios.empty()) {
    over.ratio_to_native = median(over.launch_ratios);
    if (const auto likely = likely_median(over.launch_ratios); likely && over.arm != "native") {
      over.ratio_low = likely->low;
      over.ratio_high = likely->high;
    }
  }
  over.ratio_to_best = over.best_low = over.best_high = std::nullopt;
  if (const auto ratios = values(rows, &bench_result::ratio_to_best); !ratios.empty()) {
    over.ratio_to_best = median(ratios);
    if (const auto likely = likely_median(ratios); likely && over.arm == "tuned") {
      over.best_low = likely->low;
      over.best_high = likely->high;
    }
  }
  return over;
}

learning_result learning_over(const std::vector<const learning_result*>& parts) {
  const auto middle = [&](double learning_result::*field) { return median(values(parts, field)); };
  learning_result over = *parts.front();
  for (const auto field : {&learning_result::total_s, &learning_result::native_total_s,
                           &learning_result::ratio_to_native, &learning_result::best_total_s,
                           &learning_result::ratio_to_best, &learning_result::best_median_s})
    over.*field = middle(field);
  over.native_low = over.native_high = std::nullopt;
  if (const auto likely = likely_median(values(parts, &learning_result::ratio_to_native))) {
    over.native_low = likely->low;
    over.native_high = likely->high;
  }
  for (const auto field : {&learning_result::worst_call_s, &learning_result::best_worst_call_s})
    over.*field = std::ranges::max(values(parts, field));
  std::vector<std::string> arms;
  for (const learning_result* part : parts) arms.push_back(part->best_arm);
  over.best_arm = together(arms, " or ");
  return over;
}

}  // namespace

void add_own_algorithm(bench_results& by_default, const bench_results& by_algorithm) {
  for (bench_result row : by_algorithm.results) {
    const auto native = std::ranges::find_if(by_default.results, [&](const bench_result& r) {
      return r.arm == "native" && r.collective == row.collective && r.bytes == row.bytes;
    });
    row.ratio_to_native = row.ratio_low = row.ratio_high = row.ratio_to_best = std::nullopt;
    if (native != by_default.results.end()) row.ratio_to_native = row.median_s / native->median_s;
    by_default.results.push_back(std::move(row));
  }
  // Adds why algorithms were left out.
  by_default.notes.insert(by_algorithm.notes.begin(), by_algorithm.notes.end());
}

bench_results over_launches(std::span<const bench_results> launches) {
  if (launches.empty()) throw error("bench: expected at least one launch");
  bench_results all = launches.front();
  for (const bench_results& b : launches)
    if (b.num_ranks != all.num_ranks || b.ranks_per_node != all.ranks_per_node)
      throw error("bench: a launch had " + std::to_string(b.num_ranks) + " ranks, " +
                  std::to_string(b.ranks_per_node) + " per node; the first launch had " +
                  std::to_string(all.num_ranks) + " ranks, " + std::to_string(all.ranks_per_node) +
                  " per node");
  all.results.clear();
  for (const auto& rows : cells_of(launches, &bench_results::results, [](const bench_result& r) {
         return std::tie(r.collective, r.bytes, r.arm);
       }))
    all.results.push_back(row_over(rows));
  // An arm that was wrong once may be wrong anywhere, however fast it was.
  for (const bench_results& b : launches)
    for (const wrong_arm& wrong : wrong_arms(b))
      std::erase_if(all.results, [&](const bench_result& r) {
        return r.collective == wrong.collective && r.arm == wrong.arm;
      });
  // Results that the first launch lacks still belong to their cell.
  std::vector<std::pair<std::string, std::int64_t>> cells;
  for (const bench_result& r : all.results) cells.emplace_back(r.collective, r.bytes);
  std::ranges::stable_sort(all.results, {}, [&](const bench_result& r) {
    return std::ranges::find(cells, std::pair(r.collective, r.bytes)) - cells.begin();
  });
  all.learning.clear();
  for (const auto& parts : cells_of(
           launches, &bench_results::learning,
           [](const learning_result& l) { return std::tie(l.collective, l.bytes, l.first_call); }))
    all.learning.push_back(learning_over(parts));
  for (const bench_results& b : launches)
    for (const own_algorithm& a : b.own_algorithms)
      if (std::ranges::find(all.own_algorithms, a) == all.own_algorithms.end())
        all.own_algorithms.push_back(a);
  std::map<std::string, std::vector<std::string>> notes;
  for (const bench_results& b : launches)
    for (const auto& [name, note] : b.notes) notes[name].push_back(note);
  for (const auto& [name, words] : notes) all.notes[name] = together(words, "; ");
  all.notes["launches"] = std::to_string(launches.size());
  return all;
}

}  // namespace railpass::internal::measure
