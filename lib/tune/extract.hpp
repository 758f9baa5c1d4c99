// SPDX-License-Identifier: BSL-1.0
//
// Numbers out of what a command printed.
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

/// "latency", "bandwidth", "time" or "memory"; throws error that lists these.
goal goal_of(std::string_view metric);

/// What to look for.
struct extraction {
  std::vector<goal> goals;
  /// Regular expressions of RE2, which take time in proportion to the text, with one group around
  /// the number, or none: all of the match.
  /// Either one per goal, or one per goal other than time and memory, which are those of the
  /// command itself then. Looked for in every line of standard output.
  std::vector<std::string> patterns;
  /// "railpass" (bench --json), "osu", "imb", "netpipe": read instead of patterns. Latency is the
  /// time of a message or of a collective. Empty: none.
  std::string format;
  /// Of formats: the message sizes that count, all if empty.
  std::vector<std::int64_t> sizes_bytes;
};

class extractor {
 public:
  /// Throws error that names what does not fit together.
  explicit extractor(const extraction& wanted);

  /// One value per goal; of several numbers (lines, sizes) the geometric mean. Throws error with a
  /// sentence if one is not there or is not positive.
  std::vector<double> values(const command_result& done, std::string_view text) const;
  const std::vector<goal>& goals() const { return wanted_.goals; }

 private:
  double from_pattern(std::size_t pattern, std::string_view text) const;

  extraction wanted_;
  std::vector<std::shared_ptr<const re2::RE2>> patterns_;
};

}  // namespace railpass::internal::tune
