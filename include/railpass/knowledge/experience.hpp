// SPDX-License-Identifier: BSL-1.0
//
// Knowledge that passes from one run to the next, as plain data. The store (lib/store) keeps it;
// analysis.hpp and the priors of the next run use it. Feki, Gabriel: Incorporating Historic
// Knowledge into a Self-Optimizing Communication Library (ADCL).
#pragma once

#include "models/profile.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace railpass::knowledge {

/// The properties that all calls of a context share, in any run. Times of equal problems are
/// comparable.
struct problem {
  std::string collective{};
  std::string operation = "none";  ///< class of the reduction, as in dumps
  int num_ranks = 2;
  int ranks_per_node = 1;
  std::string kind = "world";  ///< of the communicator: "world", or "part" for any other
  std::string rails{};         ///< networks that messages are sent over; empty: MPI's own messages
  /// Of a call; for a context of several sizes, the size first seen, or the mean size with six
  /// binary digits.
  std::int64_t bytes = 0;
  friend bool operator==(const problem&, const problem&) = default;
};

/// The kind of the communicator with this MPI name.
inline std::string kind_of(const std::string& communicator) {
  return communicator == "MPI_COMM_WORLD" ? "world" : "part";
}

/// The knowledge of one arm.
struct arm_experience {
  std::string arm{};       ///< as name_of() writes it: "binomial+segment_bytes=8192", "native"
  std::int64_t calls = 0;  ///< timed or not
  select::sampled_times times{};                 ///< all known, of at least one sample
  std::optional<select::time_estimate> prior{};  ///< the prediction of that run
  std::optional<select::pair_record> pairs{};    ///< against native, by calls at the same time
  friend bool operator==(const arm_experience&, const arm_experience&) = default;
};

/// One context of one run, or of several runs combined.
struct experience {
  problem of{};
  std::vector<arm_experience> arms{};  ///< those with samples, each once
  std::int64_t runs = 1;               ///< number of runs combined
  std::string first_at{};              ///< UTC, 2026-01-31T12:00:00Z: the oldest of these runs
  std::string last_at{};               ///< the latest
  friend bool operator==(const experience&, const experience&) = default;
};

/// Properties of the machine besides its fingerprint. Empty: unknown.
struct conditions {
  std::string railpass_version{};
  std::string governor{};        ///< of the first core's frequency: "performance", "powersave"
  std::optional<double> load{};  ///< of the last minute at the end of the run, in cores
  std::string kernel{};          ///< its release, as uname -r says it
  std::string drivers{};         ///< versions of modules: "mlx5_core 5.8-1.1.2, nvidia 550.90.12"
  friend bool operator==(const conditions&, const conditions&) = default;
};

/// The knowledge of one run. Contains no name of a host, user or program.
struct run_record {
  fingerprint machine{};
  conditions was{};
  std::string ended_at{};  ///< UTC
  std::vector<experience> contexts{};
  friend bool operator==(const run_record&, const run_record&) = default;
};

}  // namespace railpass::knowledge
