// SPDX-License-Identifier: BSL-1.0
//
// Collects what a profile is fitted to: files of measurements, and knowledge of earlier runs.
#pragma once

#include "lib/files/files.hpp"

#include <functional>
#include <string>
#include <vector>

namespace railpass::internal::measure {

struct fit_input {
  measurements all;
  fingerprint machine_id;
  std::string time;  ///< of the first measurement; empty: unknown
  /// A sentence for arms that this railpass does not have, and for each skipped file of knowledge.
  std::vector<std::string> problems;
};

/// @param paths files of any kind that files::read_measurements() knows
/// @param facts about files that do not contain these facts
/// @param knowledge a value of the setting RAILPASS_KNOWLEDGE; empty: no knowledge
/// @param here returns the marks of this machine; called if there is knowledge, but no file says
/// where it was measured
/// Throws error if a file cannot be read, or if files are of different machines.
fit_input collect_fit_input(const std::vector<std::string>& paths, const files::import_facts& facts,
                            const std::string& knowledge, const std::function<fingerprint()>& here);

}  // namespace railpass::internal::measure
