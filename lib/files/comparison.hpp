// SPDX-License-Identifier: BSL-1.0
//
// What `railpass compare` finds: the times of a command without and with railpass, run in turn.
#pragma once

#include "models/profile.hpp"
#include "railpass/base/statistics.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::files {

/// The result for railpass, with at least 95 % confidence.
enum class shown_gain { nothing, faster, slower };

struct comparison {
  fingerprint machine_id{};  ///< of the host that it was started on
  std::string host{};
  std::string compared_at{};  ///< UTC, 2026-01-31T12:00:00Z
  std::string railpass_version{};
  std::vector<std::string> command{};
  std::vector<double> without_s{}, with_s{};  ///< by run; equal numbers of runs, at least one
  bool same_output = false;                   ///< of all runs
  bool same_output_but_numbers = false;

  std::vector<double> ratios() const;  ///< with / without, pair by pair
  shown_gain shown() const;
  /// The same in one sentence.
  std::string verdict() const;
};

std::string to_json(const comparison& c);
comparison parse_comparison(std::string_view text, const std::string& name);

}  // namespace railpass::internal::files
