// SPDX-License-Identifier: BSL-1.0
//
// Knowledge in files of any kind, and in other stores.
#pragma once

#include "railpass/knowledge/collection.hpp"

#include <span>
#include <string>
#include <vector>

namespace railpass::internal::store {

/// The runs of a file: a statistics dump, bench results, or exported knowledge. Throws error.
std::vector<knowledge::stored_run> runs_of_file(const std::string& path);

/// The runs of such a file or of a store, a folder. Adds a sentence to `problems` for each file of
/// the store that was skipped. Throws error.
std::vector<knowledge::stored_run> runs_of(const std::string& path,
                                           std::vector<std::string>& problems);

/// The knowledge of the machine that was used last.
struct machine_knowledge {
  fingerprint machine{};                          ///< knowledge::marks_for_plan()
  std::vector<knowledge::experience> contexts{};  ///< each problem once
  std::vector<std::string> left_out{};            ///< a sentence for each other machine
};
/// Joins the knowledge of files and stores, also of runs that go on. A run that is in several of
/// them counts once. Otherwise like runs_of(); throws error if there is no knowledge.
machine_knowledge latest_machine_of(std::span<const std::string> paths,
                                    std::vector<std::string>& problems);

}  // namespace railpass::internal::store
