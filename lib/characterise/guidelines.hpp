// SPDX-License-Identifier: BSL-1.0
//
// Performance guidelines that the MPI library's own collectives violate, and cliffs in their times.
// Pure: both follow from bench results.
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
  double time_s = 0;    ///< time of the collective
  double others_s = 0;  ///< sum of the times of the other collectives
  bool is_certain = true;
  friend bool operator==(const violation&, const violation&) = default;
};

/// The violations by the arm native in a bench of several launches. The collective is at least 5 %
/// slower than the other collectives together, and the lower bound of its median time over the
/// launches exceeds the sum of their upper bounds. A violation is certain if there are enough
/// launches for bounds with 95 % confidence. Messages of the other collectives may be longer by a
/// few elements.
std::vector<violation> violations_of(const bench_results& bench);

/// Two neighbouring measured sizes between which native's time grows faster than the size, or
/// falls.
struct cliff {
  std::string collective{};
  int num_ranks = 0;
  std::int64_t from_bytes = 0, to_bytes = 0;
  double from_s = 0, to_s = 0;
  bool is_certain = true;
  bool falls() const { return to_s < from_s; }
  friend bool operator==(const cliff&, const cliff&) = default;
};
/// The cliffs in such a bench, by the bounds of the medians over its launches; certain as above.
std::vector<cliff> cliffs_of(const bench_results& bench);

}  // namespace railpass::internal::characterise
