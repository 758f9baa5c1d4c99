// SPDX-License-Identifier: BSL-1.0
//
// Extracts numbers from the output of a command.
#pragma once

#include "lib/tune/command.hpp"
#include "lib/tune/measurements.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace railpass::internal::tune {

/// For "latency", "bandwidth", "time" or "memory". Throws error that lists these metrics.
goal goal_of(std::string_view metric);

/// The numbers to extract.
struct extraction {
  std::vector<goal> goals;
  /// RE2 regular expressions, which take time in proportion to the text. A group marks the number;
  /// without a group the whole match is the number. Give one pattern per goal, or one pattern per
  /// goal other than time and memory, which are then measured for the command itself. Every line of
  /// standard output is searched.
  std::vector<std::string> patterns;
  /// "railpass" (bench --json), "osu", "imb" or "netpipe": read instead of patterns. Latency is the
  /// time of a message or of a collective. Empty: patterns.
  std::string format;
  /// For formats: the message sizes that count; empty: all sizes.
  std::vector<std::int64_t> sizes_bytes;
};

class extractor {
 public:
  /// Throws error that names the contradiction, if `wanted` contains any.
  explicit extractor(const extraction& wanted);

  /// One value per goal: the geometric mean of its numbers (lines, sizes). Throws error with a
  /// sentence if a value is missing or not positive.
  std::vector<double> values(const command_result& done, std::string_view text) const;
  const std::vector<goal>& goals() const { return wanted_.goals; }

 private:
  double from_pattern(std::size_t pattern, std::string_view text) const;

  extraction wanted_;
  std::vector<std::shared_ptr<const re2::RE2>> patterns_;
};

}  // namespace railpass::internal::tune
