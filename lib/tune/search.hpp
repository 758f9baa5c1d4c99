// SPDX-License-Identifier: BSL-1.0
//
// The interface of searches. A search is asked repeatedly for combinations to launch next, until it
// has none. Equal measurements give equal answers, so that an interrupted search can resume.
#pragma once

#include "lib/tune/measurements.hpp"

#include <random>
#include <span>
#include <vector>

namespace railpass::internal::tune {

struct search_view {
  const space& where;
  const table& measured;
  std::span<const double> weights;  ///< of the goals
  const precision& wanted;
  std::uint64_t runs_left;  ///< approximate number of launches that fit into the remaining time
  std::mt19937_64& random;

  standings ranks() const { return {measured, weights, wanted}; }
};

class search {
 public:
  virtual ~search() = default;
  /// Combinations to launch once each, in any order; a combination named twice is launched twice.
  /// Empty: the search has ended.
  virtual std::vector<combination> next(const search_view& view) = 0;
  /// Approximate number of launches, for a progress bar. Called before the first next().
  virtual double expected_runs(const search_view& view) const = 0;
};

/// The number of combinations, counted up to `most`.
inline double count_up_to(const search_view& view, std::uint64_t most) {
  return double(view.where.count(condition_rule::first_value, most));
}

/// All combinations if there are at most `most`; else `most` different random combinations.
inline std::vector<combination> all_or_some(const search_view& view, std::size_t most) {
  std::vector<combination> found;
  if (view.where.count(condition_rule::first_value, most + 1) <= most) {
    auto c = view.where.first();
    for (bool more = c.has_value(); more; more = view.where.next(*c)) found.push_back(*c);
    return found;
  }
  std::map<combination, bool> drawn;
  for (std::size_t attempt = 0; attempt < 20 * most && found.size() < most; ++attempt) {
    combination c = view.where.draw(view.random);
    if (!drawn[c]) found.push_back(c);
    drawn[c] = true;
  }
  return found;
}

}  // namespace railpass::internal::tune
