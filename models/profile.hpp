// SPDX-License-Identifier: BSL-1.0
//
// A profile: what was learnt about one machine, with the marks by which that machine is recognised.
// Plain data; lib/files reads and writes it.
#pragma once

#include "models/machine.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railpass {

/// What a machine and its MPI are recognised by; nothing that names one host.
struct fingerprint {
  int num_hosts = 1;          ///< hosts that took part
  int cores_per_host = 0;     ///< 0: unknown
  std::string cpu_model{};    ///< as the kernel says it; empty: unknown
  std::string mpi_library{};  ///< first line of MPI_Get_library_version; empty: unknown
  std::string rails{};        ///< networks that messages were sent over; empty: MPI's own messages
  friend bool operator==(const fingerprint&, const fingerprint&) = default;
};

/// Why measurements made on `from` do not hold on `here`, as the end of a sentence; empty if they
/// do. Unknown marks are not compared. The number of hosts may differ, except that one host alone
/// has no link across nodes.
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
      from.mpi_library != here.mpi_library)
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

/// Of an arm among those of its algorithm, all in octaves; see railpass/select/belief/misfit.hpp.
struct misfit_place {
  static constexpr double one_segment = 24;  // larger than all segments
  double size = 0;                           ///< how much longer a message takes than one of a byte
  double ranks = 0, ranks_per_node = 0;
  double segments = 0;  ///< how many, in a message of that size
  double segment_bytes = one_segment;
  std::array<double, 3> others{};  ///< parameters, in the descriptor's order

  friend bool operator==(const misfit_place&, const misfit_place&) = default;
};

/// What an algorithm's closed form is multiplied with to meet what was measured, and how far it was
/// off even so.
struct algorithm_correction {
  std::string collective{};
  std::string algorithm{};
  double factor = 1;
  /// A measurement, and what it says about the arms around, see railpass/select/belief/misfit.hpp.
  struct point {
    misfit_place place{};
    double weight = 0;
    double noise = 0;    ///< standard error of ln(time), beyond what every measurement has
    double own = 0;      ///< of ln(time), what the other measurements do not say
    double seconds = 0;  ///< as measured; 0: not known
  };
  std::vector<point> points{};
};

/// A collective's time as measured: the median over runs.
struct collective_time {
  std::string collective{};
  std::string arm{};
  int num_ranks = 0;
  int ranks_per_node = 1;
  std::int64_t bytes = 0;
  double median_s = 0;
  std::int64_t runs = 0;    ///< 0: enough, as far as anybody knows
  double run_spread = 0;    ///< standard deviation of ln(seconds) of one run, rare slow ones apart
  int ranks_per_cache = 0;  ///< see cost_query; known of a bench alone
};

/// With less of a core than this (profile::core_share) a rank shared it, and times are too long.
inline constexpr double own_core_share = 0.9;

struct profile {
  fingerprint machine_id{};
  std::string sampled_at{};  ///< UTC, 2026-01-31T12:00:00Z; empty: unknown
  machine_model machine{};
  std::vector<algorithm_correction> corrections{};
  /// What no closed form tells: the native arm's times.
  std::vector<collective_time> measured{};
  /// The least share of a core that a rank got while it was sampled; empty: unknown.
  std::optional<double> core_share{};

  /// Null if the algorithm was never measured.
  const algorithm_correction* correction(std::string_view collective,
                                         std::string_view algorithm) const {
    for (const algorithm_correction& c : corrections)
      if (c.collective == collective && c.algorithm == algorithm) return &c;
    return nullptr;
  }
};

}  // namespace railpass
