// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/planned.hpp"

#include "lib/characterise/gains.hpp"
#include "railpass/knowledge/freeze.hpp"
#include "railpass/knowledge/imports.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <algorithm>
#include <iterator>

namespace railpass::internal::characterise {
namespace {

// An entry of a plan holds for a class of sizes, of which several may have been measured.
bool gains_in_its_class(const bench_result& r, const std::vector<bench_result>& all) {
  const int size_class = select::size_class_of(r.bytes);
  const auto gains_at = [&](std::int64_t bytes) {
    return std::ranges::any_of(all, [&](const bench_result& other) {
      return other.collective == r.collective && other.arm == r.arm && other.bytes == bytes;
    });
  };
  return std::ranges::all_of(all, [&](const bench_result& other) {
    return other.arm != "native" || other.collective != r.collective ||
           select::size_class_of(other.bytes) != size_class || gains_at(other.bytes);
  });
}

}  // namespace

std::vector<knowledge::planned_calls> plan_of(std::span<const libraries::named_bench> benches) {
  std::vector<knowledge::experience> known;
  for (const libraries::named_bench& one : benches) {
    bench_results certain = decided(one.bench, arms_of::railpass);
    std::erase_if(certain.results, [](const bench_result& r) {
      return r.arm != "native" && (is_own_algorithm(r.arm) || !is_certain_gain(r));
    });
    std::erase_if(certain.results, [all = certain.results](const bench_result& r) {
      return r.arm != "native" && !gains_in_its_class(r, all);
    });
    std::ranges::move(knowledge::record_of(certain).contexts, std::back_inserter(known));
  }
  return knowledge::freeze(known).calls;
}

}  // namespace railpass::internal::characterise
