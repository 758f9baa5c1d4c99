// SPDX-License-Identifier: BSL-1.0
#include "lib/files/comparison_fields.hpp"
#include "railpass/base/units.hpp"

#include <cstddef>

namespace railpass::internal::files {

std::vector<double> comparison::ratios() const {
  std::vector<double> all;
  for (std::size_t r = 0; r < without_s.size(); ++r) all.push_back(with_s[r] / without_s[r]);
  return all;
}

shown_gain comparison::shown() const {
  const median_bounds ratio = bounds_of_median(ratios());
  if (ratio.confidence < 0.95) return shown_gain::nothing;
  if (ratio.bounds.high < 1) return shown_gain::faster;
  return ratio.bounds.low > 1 ? shown_gain::slower : shown_gain::nothing;
}

std::string comparison::verdict() const {
  const median_bounds ratio = bounds_of_median(ratios());
  if (ratio.confidence < 0.95)
    return "Too few runs: an interval of 95 % takes at least 6 repetitions.";
  if (shown() == shown_gain::nothing) return "No difference can be told from noise.";
  return std::string("The program is ") + (shown() == shown_gain::faster ? "faster" : "slower") +
         " with railpass, with " + percent(ratio.confidence, 0) + " confidence.";
}

std::string to_json(const comparison& c) { return document_of(c); }
comparison parse_comparison(std::string_view text, const std::string& name) {
  return parse_document<comparison>(text, name);
}

}  // namespace railpass::internal::files
