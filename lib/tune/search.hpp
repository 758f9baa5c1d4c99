// SPDX-License-Identifier: BSL-1.0
//
// What every search is: asked again and again which combinations to launch next, until it has no
// more questions. Launches with equal measurements so far get equal answers, which is what makes an
// interrupted search go on where it was.
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
  std::uint64_t runs_left;  ///< launches there is time for, about; never exact
  std::mt19937_64& random;

  standings ranks() const { return {measured, weights, wanted}; }
};

class search {
 public:
  virtual ~search() = default;
  /// One launch of each of these comes next, in any order; one that is named twice is launched
  /// twice. None: the search has ended.
  virtual std::vector<combination> next(const search_view& view) = 0;
  /// About how many launches that will be, for a progress bar. Asked before the first next().
  virtual double expected_runs(const search_view& view) const = 0;
};

/// How many combinations there are, counted no further than `most`.
inline double count_up_to(const search_view& view, std::uint64_t most) {
  return double(view.where.count(condition_rule::first_value, most));
}

/// All combinations if they are no more than `most`, else that many different random ones.
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
