// SPDX-License-Identifier: BSL-1.0
//
// Runs the checker over algorithms: what `railpass verify` and the tests call.
#pragma once

#include "collectives/registry.hpp"
#include "railpass/schedule/checker.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass {

constexpr promise promise_of(collective op) {
  return op == collective::broadcast ? promise::root_to_all : promise::reduce_to_all;
}

/// The schedules of all virtual ranks.
inline std::vector<schedule> build_all(const arm& a, std::int32_t num_ranks, bool commutative) {
  std::vector<schedule> all;
  for (std::int32_t v = 0; v < num_ranks; ++v)
    all.push_back(
        a.base->build({.rank = v, .num_ranks = num_ranks, .commutative = commutative}, a.values));
  return all;
}

/// Checks one arm in one case; `what` and the schedules follow from the arm. The arm must be
/// eligible, and not native.
inline check_result check(const arm& a, std::int32_t num_ranks, check_case c) {
  c.what = promise_of(a.base->op);
  const std::vector<schedule> schedules = build_all(a, num_ranks, c.commutative);
  return checker{}.check(schedules, c);
}

/// One arm at one number of ranks.
struct verification {
  std::string_view algorithm;
  std::vector<std::pair<std::string, std::int64_t>> parameters;  ///< name, value
  bool ok = true;
  std::int64_t steps = 0;        ///< instances of steps checked, over all ranks and sizes
  std::size_t memory_bytes = 0;  ///< of the largest schedule
  std::string message;           ///< the first error, with the size and the kind of call
};

namespace verify_detail {

inline bool same_steps(const std::vector<schedule>& a, const std::vector<schedule>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const schedule& x, const schedule& y) {
                      return x.scratch_mask == y.scratch_mask && x.steps == y.steps &&
                             x.dependencies == y.dependencies && x.successors == y.successors;
                    });
}

// Units where something changes: none, fewer than ranks, around one block or segment per rank,
// around the ends of segments, several segments.
inline std::vector<std::int64_t> sizes_to_check(std::int64_t p, std::int64_t segment_units) {
  std::vector<std::int64_t> sizes{0, 1, p - 1, p, p + 1};
  if (segment_units > 0) {
    const std::int64_t s = segment_units;
    for (const std::int64_t u : {s - 1, s, s + 1, 3 * s + 1, p * s + 1, 2 * p * s - 1})
      sizes.push_back(u);
  } else {
    sizes.push_back(2 * p + p / 2);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace verify_detail

/// Proves every arm of the collective for `num_ranks` ranks: all algorithms that are eligible
/// there, with all values of their parameters, sizes around the ends of blocks and segments, in
/// place and not, commutative and not where allowed. `root` (physical) is for messages: see
/// checker.hpp.
///
/// Segments are made of a few units by checking with large units, so that small messages have many.
/// Arms with the same schedules, up to the length of a segment, are the same proof: the first of
/// them gets all sizes, the others one of several segments.
inline std::vector<verification> verify(collective op, std::int32_t num_ranks, std::int32_t root) {
  if (num_ranks < 1)
    throw error("verify: the number of ranks is " + std::to_string(num_ranks) +
                ", expected at least 1");
  if (root < 0 || root >= num_ranks)
    throw error("verify: the root is " + std::to_string(root) + ", expected a rank from 0 to " +
                std::to_string(num_ranks - 1));
  constexpr std::int64_t units_per_segment = 2;
  std::vector<verification> results;
  std::vector<std::pair<const algorithm*, std::vector<schedule>>> proved;
  checker check;
  for (const arm& a : arms_of(op)) {
    if (a.base->is_native()) continue;
    verification v;
    v.algorithm = a.base->name;
    for (int i = 0; i < a.base->num_parameters(); ++i)
      v.parameters.emplace_back(a.base->parameter_list[std::size_t(i)].name,
                                a.values[std::size_t(i)]);
    bool runs = false;
    for (const bool commutative : {true, false}) {
      if (!commutative && op == collective::broadcast) continue;
      if (!eligible(*a.base, {.num_ranks = num_ranks,
                              .units = a.base->needs.min_units_per_rank * num_ranks,
                              .commutative = commutative}))
        continue;
      runs = true;
      std::vector<schedule> schedules = build_all(a, num_ranks, commutative);
      const std::int64_t segment_bytes = schedules[0].segment_bytes;
      const bool seen = std::any_of(proved.begin(), proved.end(), [&](const auto& other) {
        return other.first == a.base &&
               (other.second[0].segment_bytes > 0) == (segment_bytes > 0) &&
               verify_detail::same_steps(other.second, schedules);
      });
      check_case c{.what = promise_of(op), .root = root, .commutative = commutative};
      c.size.unit_bytes = std::max<std::int64_t>(1, segment_bytes / units_per_segment);
      const std::int64_t segment_units = segment_bytes > 0 ? units_per_segment : 0;
      std::vector<std::int64_t> sizes = verify_detail::sizes_to_check(num_ranks, segment_units);
      if (seen) sizes = {3 * std::max<std::int64_t>(1, segment_units) + 1};
      for (const bool in_place : {false, true}) {
        if (in_place && (op == collective::broadcast || seen)) continue;
        c.in_place = in_place;
        c.prove_ending = !in_place;
        // What memory is shared matters in place, for which every other size will do.
        for (std::size_t i = in_place ? 1 : 0; i < sizes.size(); i += in_place ? 2 : 1) {
          const std::int64_t units = sizes[i];
          if (!v.ok || units < a.base->needs.min_units_per_rank * num_ranks) continue;
          c.size.units = units;
          const check_result r = check.check(schedules, c);
          v.steps += r.steps;
          v.memory_bytes = std::max(v.memory_bytes, r.memory_bytes);
          if (r.ok) continue;
          v.ok = false;
          v.message = std::to_string(units) + " units, segments of " +
                      std::to_string(c.size.segment_units(segment_bytes)) +
                      (op == collective::broadcast ? ""
                       : commutative               ? ", commutative"
                                                   : ", not commutative") +
                      (in_place ? ", in place" : "") + ": " + r.message;
        }
      }
      if (!seen) proved.emplace_back(a.base, std::move(schedules));
    }
    if (runs) results.push_back(std::move(v));
  }
  return results;
}

}  // namespace railpass
