// SPDX-License-Identifier: BSL-1.0
//
// The statistics dump: the knowledge of a communicator's session and the reasons for its choices,
// as plain data. The session fills the dump, lib/files writes and reads it, `railpass stats` shows
// it.
#pragma once

#include "models/profile.hpp"
#include "railpass/select/policy/time_estimate.hpp"
#include "railpass/select/statistics/pairs.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace railpass::select {

/// The quantiles 10 %, 50 % and 90 % of times.
struct time_quantiles {
  double low_s = 0, median_s = 0, high_s = 0;
  friend bool operator==(const time_quantiles&, const time_quantiles&) = default;
};

/// The times of an arm's timed calls, in seconds of whole calls, up to the last rank.
struct sampled_times {
  std::int64_t samples = 0;    ///< timed calls in synchronisations
  double mean_s = 0;           ///< 0: unknown
  double spread = 0;           ///< standard deviation of ln(seconds)
  time_quantiles quantiles{};  ///< of a selection of the samples; 0: unknown
  friend bool operator==(const sampled_times&, const sampled_times&) = default;
};

struct arm_statistics {
  std::string arm{};
  std::int64_t calls = 0;
  sampled_times times{};
  double time_s = 0;                         ///< each call counts the mean of the next samples
  std::optional<time_estimate> prior{};      ///< empty: no prediction
  std::optional<time_estimate> posterior{};  ///< empty: neither predicted nor measured
  double probability = 0;                    ///< of being chosen by the next calls
  double exploration_cost_s = 0;       ///< time lost against the incumbent by trials; < 0: won
  std::optional<pair_record> pairs{};  ///< against native; empty: never compared
};

struct context_statistics {
  std::string communicator{};  ///< its name, or a number that distinguishes communicators
  std::string collective{};
  int num_ranks = 0;
  int ranks_per_node = 1;
  std::string rails{};           ///< networks used for messages; empty: MPI's own messages
  std::int64_t from_bytes = 0;   ///< sizes from here
  std::int64_t to_bytes = 0;     ///< to here, inclusive
  std::int64_t first_bytes = 0;  ///< size of the first call, or the mean size below; 0: unknown
  /// The mean size of calls, if synchronisations report sizes; from_bytes and to_bytes are then the
  /// smallest and largest size.
  std::optional<double> mean_bytes{};
  std::string operation{};  ///< class of the reduction, "none" otherwise; see is_set_context
  std::string baseline = "native";  ///< the arm to which other arms are compared
  std::string policy{};
  std::string current_arm{};
  std::string reason{};  ///< one sentence: why the current arm was chosen
  std::int64_t calls = 0;
  double time_s = 0;
  double exploration_cost_s = 0;
  std::int64_t checked_calls = 0;  ///< whose results the ranks have checked
  double checks_s = 0;             ///< time of these checks on rank 0; time_s excludes it
  /// Arrival imbalance: how much later the last rank arrived than the first, over the latest calls
  /// for which it is known: median and 90 % quantile.
  std::optional<double> skew_s{};
  std::optional<double> skew_p90_s{};
  /// If all ranks wait for all: the share of the communicator's such timed calls, in [0, 1], in
  /// which a rank lost its core to other processes.
  std::optional<double> core_given_share{};
  /// The share of timed calls, in [0, 1], whose time is the cost of the call to the program, by a
  /// clock that all ranks share. All other times are times inside the call.
  std::optional<double> cost_share{};
  /// The share of the communicator's call time, in [0, 1], that overlaps with its other calls,
  /// because some ranks are in the next call while other ranks are in this call.
  double overlapped_share = 0;
  /// Median overhead of railpass in a converged call on rank 0, before and after its arm.
  std::optional<double> own_s{};
  std::vector<arm_statistics> arms{};
};

/// Whether the context is a function set's. The set's name then stands for the collective, and
/// the operation is "set" with the context's properties: "set+shape=64x64+region=solve".
inline bool is_set_context(const context_statistics& c) { return c.operation.starts_with("set"); }

/// Whether the sizes of the context's calls differ so much that its times describe no size.
inline bool mixes_sizes(const context_statistics& c) {
  constexpr double factor = 8;
  return c.mean_bytes &&
         double(c.to_bytes) >= factor * double(std::max<std::int64_t>(1, c.from_bytes));
}

/// One rail of a communicator, and this rank's traffic over it.
struct rail_statistics {
  std::string rails{};  ///< the list of rails as opened
  std::string rail{};
  std::int64_t sent_bytes = 0;
  double share = 0;                          ///< of the bytes sent over all these rails
  double bytes_per_s = 0;                    ///< as estimated; median over the peers
  std::int64_t changes = 0;                  ///< of the rate, over all peers
  std::optional<double> prediction_error{};  ///< |predicted - actual| / actual, median
  double backlog_s = 0;                      ///< mean time for which it was busy when needed
};

/// The difference of a host from the mean of all other hosts, or their ratio, with an interval.
struct host_difference {
  double value = 0, low = 0, high = 0;
  bool is_named = false;  ///< the whole interval is beyond the threshold of what matters
  friend bool operator==(const host_difference&, const host_difference&) = default;
};

/// A host of the program. Empty differences: unknown, or known in too few batches.
struct host_statistics {
  int host = 0;        ///< from 0 on, in the order of the hosts' first ranks
  std::string name{};  ///< empty unless the user asks for names
  int first_rank = 0;  ///< in MPI_COMM_WORLD
  int num_ranks = 1;
  std::optional<host_difference> late_s{};         ///< longer between a call and the next call
  std::optional<host_difference> starved_share{};  ///< more of the time ready to run without a core
  std::optional<host_difference> link_factor{};  ///< ratio: how much longer exchanges of data take
  friend bool operator==(const host_statistics&, const host_statistics&) = default;
};

struct statistics_dump {
  fingerprint machine_id{};
  std::string written_at{};  ///< UTC, 2026-01-31T12:00:00Z
  std::int64_t merges = 0;
  double merge_cost_s = 0;  ///< of all synchronisations together
  std::vector<context_statistics> contexts{};
  std::vector<rail_statistics> rails{};
  std::vector<host_statistics> hosts{};  ///< if all ranks ask for statistics, from 2 hosts on
};

}  // namespace railpass::select
