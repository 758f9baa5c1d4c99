// SPDX-License-Identifier: BSL-1.0
#include "lib/files/comparison.hpp"

#include "lib/files/shared_parts.hpp"
#include "railpass/base/units.hpp"

#include <cstddef>

namespace railpass::internal::files {

namespace {

constexpr std::string_view format = "railpass compare";
constexpr int version = 1;

json times_json(const std::vector<double>& seconds) {
  const double middle = median(seconds);
  return {{"median_s", middle}, {"spread", robust_spread(seconds) / middle}, {"seconds", seconds}};
}

}  // namespace

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

std::string to_json(const comparison& c) {
  const std::vector<double> ratios = c.ratios();
  const median_bounds ratio = bounds_of_median(ratios);
  return document_text({{"format", format},
                        {"version", version},
                        {"machine_id", fingerprint_json(c.machine_id)},
                        {"host", c.host},
                        {"compared_at", c.compared_at},
                        {"railpass_version", c.railpass_version},
                        {"command", c.command},
                        {"repetitions", c.without_s.size()},
                        {"without", times_json(c.without_s)},
                        {"with", times_json(c.with_s)},
                        {"ratio",
                         {{"median", median(ratios)},
                          {"low", ratio.bounds.low},
                          {"high", ratio.bounds.high},
                          {"confidence", ratio.confidence}}},
                        {"same_output", c.same_output},
                        {"same_output_but_numbers", c.same_output_but_numbers}});
}

comparison parse_comparison(std::string_view text, const std::string& name) {
  const json_document document(text, name);
  const json_reader top = document.expect(format, version);
  top.expect_fields({"format", "version", "machine_id", "host", "compared_at", "railpass_version",
                     "command", "repetitions", "without", "with", "ratio", "same_output",
                     "same_output_but_numbers"});
  comparison c{.machine_id = read_fingerprint(top.field("machine_id")),
               .host = top.text("host"),
               .compared_at = top.text("compared_at"),
               .railpass_version = top.text("railpass_version"),
               .command = {},
               .without_s = top.field("without").positives("seconds"),
               .with_s = top.field("with").positives("seconds"),
               .same_output = top.boolean("same_output"),
               .same_output_but_numbers = top.boolean("same_output_but_numbers")};
  for (const json_reader& word : top.list("command")) c.command.push_back(word.text());
  if (c.without_s.empty()) top.field("without").fail("expected at least one run");
  if (c.with_s.size() != c.without_s.size())
    top.field("with").fail("expected as many runs as without");
  return c;
}

}  // namespace railpass::internal::files
