// SPDX-License-Identifier: BSL-1.0
//
// Runs of any number of machines, as they go from one store to another. Plain data.
#pragma once

#include "railpass/knowledge/experience.hpp"

#include <string>
#include <vector>

namespace railpass::knowledge {

/// A run with the names by which it is recognised when it comes again: one; or several runs that
/// are merged and cannot be told apart any more.
struct stored_run {
  std::vector<std::string> ids{};
  run_record run{};
  friend bool operator==(const stored_run&, const stored_run&) = default;
};

struct collection {
  std::string written_at{};  ///< UTC
  std::vector<stored_run> runs{};
};

}  // namespace railpass::knowledge
