// SPDX-License-Identifier: BSL-1.0
//
// What times of the MPI library's own collectives say against each other: guidelines of performance
// that they violate, and cliffs. Pure.
#pragma once

#include "models/samples.hpp"
#include "railpass/base/statistics.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal::characterise {

/// A collective may take at most as long as other collectives that together do the same work.
/// Sources: Traeff, Gropp, Thakur (doi:10.1109/TPDS.2009.12); Hunold, Carpen-Amarie
/// (doi:10.1109/CLUSTER.2018.00048).
struct guideline {
  std::string collective{};
  std::vector<std::string> others{};
};
std::span<const guideline> guidelines();
/// "all_gather <= gather + broadcast"
std::string name_of(const guideline& g);

struct violation {
  std::string rule{};  ///< name_of(guideline)
  int num_ranks = 0;
  std::int64_t bytes = 0;
  double time_s = 0;    ///< of the collective
  double others_s = 0;  ///< of the others together
  friend bool operator==(const violation&, const violation&) = default;
};

/// The violations by the arm native in a bench of several launches that exceed what launches differ
/// by: the collective is slower than the others by at least 5 %, and its least time (the lower
/// bound of the median over the launches) exceeds the others' largest. Sizes of the others may
/// exceed the collective's by a few elements.
std::vector<violation> violations_of(const bench_results& bench);

/// Native's time between two measured sizes that follow each other: it grows faster than the size,
/// or falls.
struct cliff {
  std::string collective{};
  int num_ranks = 0;
  std::int64_t from_bytes = 0, to_bytes = 0;
  double from_s = 0, to_s = 0;
  bool falls() const { return to_s < from_s; }
  friend bool operator==(const cliff&, const cliff&) = default;
};
/// As certain as violations.
std::vector<cliff> cliffs_of(const bench_results& bench);

}  // namespace railpass::internal::characterise
