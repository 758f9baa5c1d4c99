// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/planned.hpp"

#include "lib/characterise/gains.hpp"
#include "railpass/knowledge/freeze.hpp"
#include "railpass/knowledge/imports.hpp"

#include <algorithm>
#include <iterator>

namespace railpass::internal::characterise {

std::vector<knowledge::planned_calls> plan_of(std::span<const libraries::named_bench> benches) {
  std::vector<knowledge::experience> known;
  for (const libraries::named_bench& one : benches) {
    bench_results certain = decided(one.bench, arms_of::railpass);
    std::erase_if(certain.results, [](const bench_result& r) {
      return r.arm != "native" && (is_own_algorithm(r.arm) || !is_certain_gain(r));
    });
    std::ranges::move(knowledge::record_of(certain).contexts, std::back_inserter(known));
  }
  return knowledge::freeze(known).calls;
}

}  // namespace railpass::internal::characterise
