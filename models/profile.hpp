// SPDX-License-Identifier: BSL-1.0
//
// A profile: the fitted model of one machine, with a fingerprint that identifies the machine. Plain
// data; lib/files reads and writes it.
#pragma once

#include "models/machine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railpass {

/// The properties that identify a machine and its MPI library; none names a host.
struct fingerprint {
  int num_hosts = 1;          ///< number of hosts
  int cores_per_host = 0;     ///< 0: unknown
  std::string cpu_model{};    ///< from the kernel; empty: unknown
  std::string mpi_library{};  ///< first line of MPI_Get_library_version; empty: unknown
  std::string rails{};        ///< networks used for messages; empty: MPI's own messages
  friend bool operator==(const fingerprint&, const fingerprint&) = default;
};

/// An MPI library's version without names: Open MPI says who built it and where, as in "package:
/// Open MPI user@host Distribution", and files of railpass 0.1 have these words.
inline std::string without_names(std::string version) {
  for (std::size_t at; (at = version.find('@')) != version.npos;) {
    const std::size_t begin = version.find_last_of(' ', at) + 1;
    version.erase(begin, std::min(version.find(' ', at), version.size() - 1) + 1 - begin);
  }
  return version;
}

/// The reason why measurements from machine `from` do not hold on machine `here`, as the end of a
/// sentence; empty if they do. Unknown properties are not compared. The number of hosts may differ,
/// except that a single host has no link across nodes.
inline std::string mismatch(const fingerprint& from, const fingerprint& here) {
  const auto differ = [](std::string_view what, const std::string& there, const std::string& now) {
    return "made on a machine with " + std::string(what) + " '" + there + "', this machine has '" +
           now + "'";
  };
  if (!from.cpu_model.empty() && !here.cpu_model.empty() && from.cpu_model != here.cpu_model)
    return differ("the CPU", from.cpu_model, here.cpu_model);
  if (from.cores_per_host > 0 && here.cores_per_host > 0 &&
      from.cores_per_host != here.cores_per_host)
    return differ("cores per host", std::to_string(from.cores_per_host),
                  std::to_string(here.cores_per_host));
  if (!from.mpi_library.empty() && !here.mpi_library.empty() &&
      without_names(from.mpi_library) != without_names(here.mpi_library))
    return differ("the MPI library", from.mpi_library, here.mpi_library);
  const auto named = [](const std::string& rails) {
    return rails.empty() ? "the MPI library's messages" : "rails '" + rails + "'";
  };
  if (from.rails != here.rails)
    return "measured over " + named(from.rails) + ", collectives here use " + named(here.rails);
  if (from.num_hosts == 1 && here.num_hosts > 1)
    return "sampled on one host, without a link across hosts; this job has " +
           std::to_string(here.num_hosts) + " hosts";
  return {};
}

/// The position of an arm among the arms of its algorithm, in octaves; see
/// railpass/select/belief/misfit.hpp.
struct misfit_features {
  static constexpr double one_segment = 24;  // larger than all segments
  double size = 0;                           ///< time of a message relative to a one-byte message
  double ranks = 0, ranks_per_node = 0;
  double segments = 0;  ///< number of segments in a message of that size
  double segment_bytes = one_segment;
  std::array<double, 3> others{};  ///< parameters, in the descriptor's order

  friend bool operator==(const misfit_features&, const misfit_features&) = default;
};

/// The factor by which an algorithm's closed form is multiplied to fit the measurements, and the
/// remaining error.
struct algorithm_correction {
  std::string collective{};
  std::string algorithm{};
  double factor = 1;
  /// A measurement and its weight for nearby arms; see railpass/select/belief/misfit.hpp.
  struct point {
    misfit_features features{};
    double weight = 0;
    double noise = 0;    ///< standard error of ln(time), beyond that of every measurement
    double own = 0;      ///< part of ln(time) that other measurements do not explain
    double seconds = 0;  ///< as measured; 0: unknown
  };
  std::vector<point> points{};
};

/// A measured time of a collective: the median over runs.
struct collective_time {
  std::string collective{};
  std::string arm{};
  int num_ranks = 0;
  int ranks_per_node = 1;
  std::int64_t bytes = 0;
  double median_s = 0;
  std::int64_t runs = 0;    ///< 0: enough, as far as known
  double run_spread = 0;    ///< standard deviation of ln(seconds) of a run, without rare slow runs
  int ranks_per_cache = 0;  ///< see cost_query; known for `railpass bench` only
};

/// A smaller share of a core (profile::core_share) means that the rank shared its core, so that
/// times are too long.
inline constexpr double own_core_share = 0.9;

struct profile {
  fingerprint machine_id{};
  std::string sampled_at{};  ///< UTC, 2026-01-31T12:00:00Z; empty: unknown
  machine_model machine{};
  std::vector<algorithm_correction> corrections{};
  /// Times of the native arm, which has no closed form.
  std::vector<collective_time> measured{};
  /// The smallest share of a core that a rank got during sampling; empty: unknown.
  std::optional<double> core_share{};

  /// Null if the algorithm is unmeasured.
  const algorithm_correction* correction(std::string_view collective,
                                         std::string_view algorithm) const {
    for (const algorithm_correction& c : corrections)
      if (c.collective == collective && c.algorithm == algorithm) return &c;
    return nullptr;
  }
};

}  // namespace railpass
