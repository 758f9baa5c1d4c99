// SPDX-License-Identifier: BSL-1.0
//
// What runs learnt, as it is kept from one to the next: plain data. The store (lib/knowledge) keeps
// it, the analysis (analysis.hpp) and the prior of the next run use it. Feki, Gabriel:
// Incorporating Historic Knowledge into a Self-Optimizing Communication Library (ADCL).
#pragma once

#include "models/profile.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace railpass::knowledge {

/// What is the same for all calls of a context, whichever run they are of: two with equal problems
/// tell of one another what they took.
struct problem {
  std::string collective{};
  std::string operation = "none";  ///< class of the reduction, as in dumps
  int num_ranks = 2;
  int ranks_per_node = 1;
  std::string kind = "world";  ///< of the communicator: "world", or "part" for any other
  std::string rails{};         ///< networks that messages are sent over; empty: MPI's own messages
  std::int64_t bytes = 0;      ///< of a call; what a context of several sizes first saw
  friend bool operator==(const problem&, const problem&) = default;
};

/// Of the name that MPI has for a communicator.
inline std::string kind_of(const std::string& communicator) {
  return communicator == "MPI_COMM_WORLD" ? "world" : "part";
}

/// What an arm took. Times are seconds of whole calls, the last rank's.
struct arm_experience {
  std::string arm{};         ///< as name_of() says it: "binomial+segment_bytes=8192", "native"
  std::int64_t calls = 0;    ///< timed or not
  std::int64_t samples = 0;  ///< timed ones, at least 1
  double mean_s = 0;         ///< of the samples
  double spread = 0;         ///< standard deviation of ln(seconds) of the samples
  double low_s = 0;          ///< what a tenth of the samples was below
  double median_s = 0;       ///< of the samples
  double high_s = 0;         ///< what a tenth of the samples was above
  std::optional<select::belief_record> prior{};  ///< what was predicted then
  std::optional<select::pair_record> pairs{};    ///< beside native, of calls of the same moments
  friend bool operator==(const arm_experience&, const arm_experience&) = default;
};

/// One context of one run, or of several runs together.
struct experience {
  problem of{};
  std::vector<arm_experience> arms{};  ///< those with samples, each once
  std::int64_t runs = 1;               ///< that are in it
  std::string first_at{};              ///< UTC, 2026-01-31T12:00:00Z: the oldest of these runs
  std::string last_at{};               ///< the latest
  friend bool operator==(const experience&, const experience&) = default;
};

/// What the machine was like besides its fingerprint. Empty or nothing: unknown.
struct conditions {
  std::string railpass_version{};
  std::string governor{};        ///< of the first core's frequency: "performance", "powersave"
  std::optional<double> load{};  ///< of the last minute at the end of the run, in cores
  friend bool operator==(const conditions&, const conditions&) = default;
};

/// What one run leaves behind. Names no host, no user and no program.
struct run_record {
  fingerprint machine{};
  conditions was{};
  std::string ended_at{};  ///< UTC
  std::vector<experience> contexts{};
  friend bool operator==(const run_record&, const run_record&) = default;
};

}  // namespace railpass::knowledge
