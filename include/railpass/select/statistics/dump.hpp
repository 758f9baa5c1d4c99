// SPDX-License-Identifier: BSL-1.0
//
// The statistics dump: what a communicator's session learnt and why it does what it does. Plain
// data; the session fills it, lib/files writes and reads it, `railpass stats` shows it.
#pragma once

#include "models/profile.hpp"
#include "railpass/select/statistics/pairs.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace railpass::select {

/// A time that is believed: the mean, and the standard deviation of its logarithm.
struct belief_record {
  double mean_s = 0;
  double spread = 0;
  friend bool operator==(const belief_record&, const belief_record&) = default;
};

/// What a tenth, half and nine tenths of times are below.
struct time_quantiles {
  double low_s = 0, median_s = 0, high_s = 0;
  friend bool operator==(const time_quantiles&, const time_quantiles&) = default;
};

struct arm_statistics {
  std::string arm{};
  std::int64_t calls = 0;
  std::int64_t samples = 0;        ///< calls that were timed and merged
  double time_s = 0;               ///< each call by the mean of the samples that came next
  std::optional<double> mean_s{};  ///< of the samples
  std::optional<double> spread{};  ///< standard deviation of ln(seconds) of the samples
  std::optional<time_quantiles> quantiles{};  ///< of some of the samples
  std::optional<belief_record> prior{};       ///< nothing: no prediction
  std::optional<belief_record> posterior{};   ///< nothing: neither predicted nor measured
  double probability = 0;                     ///< of being taken by the next calls
  double exploration_cost_s = 0;              ///< lost against the incumbent by trying it; < 0: won
  std::optional<pair_record> pairs{};         ///< against native; nothing: they never met
};

struct context_statistics {
  std::string communicator{};  ///< its name, or a number that tells several apart
  std::string collective{};
  int num_ranks = 0;
  int ranks_per_node = 1;
  std::string rails{};           ///< networks that messages are sent over; empty: MPI's own
  std::int64_t from_bytes = 0;   ///< sizes from here
  std::int64_t to_bytes = 0;     ///< to here, inclusive
  std::int64_t first_bytes = 0;  ///< size of the first call, or the mean one below; 0: unknown
  /// Where merges report the sizes of calls: their mean; the ones above are the least and the most.
  std::optional<double> mean_bytes{};
  std::string operation{};  ///< class of the reduction, "none" otherwise; see is_set_context
  std::string baseline = "native";  ///< the arm that others are compared with
  std::string policy{};
  std::string current_arm{};
  std::string reason{};  ///< one sentence: why the current arm is taken
  std::int64_t calls = 0;
  double time_s = 0;
  double exploration_cost_s = 0;
  /// How much later the last rank came to a call than the first one, of the latest calls of which
  /// that is known: the median, and what a tenth of them exceeded.
  std::optional<double> skew_s{};
  std::optional<double> skew_p90_s{};
  /// Where all wait for all: in how many of the communicator's such timed calls a rank's core was
  /// given to others, in [0, 1].
  std::optional<double> core_given_share{};
  /// In how many of the timed calls the time is what the call cost the program, by a clock that all
  /// ranks share, in [0, 1]; in the others, and all if there is none, it is a time inside the call.
  std::optional<double> cost_share{};
  /// How much of the time of the communicator's calls overlaps with that of its other calls, as
  /// some ranks are in the next call while others are in this one, in [0, 1].
  double overlapped_share = 0;
  /// What railpass itself takes of a settled call on rank 0, before and after its arm: the median.
  std::optional<double> own_s{};
  std::vector<arm_statistics> arms{};
};

/// Whether it is a function set's, whose name is in the collective's place: "set", then what tells
/// the set's contexts apart, "set+shape=64x64+region=solve".
inline bool is_set_context(const context_statistics& c) { return c.operation.starts_with("set"); }

/// Whether its calls are of so different sizes that their times tell nothing of any size.
inline bool mixes_sizes(const context_statistics& c) {
  constexpr double factor = 8;
  return c.mean_bytes &&
         double(c.to_bytes) >= factor * double(std::max<std::int64_t>(1, c.from_bytes));
}

/// One of the rails of a communicator, and what this rank has sent over it.
struct rail_statistics {
  std::string rails{};  ///< the list that was opened
  std::string rail{};
  std::int64_t sent_bytes = 0;
  double share = 0;                          ///< of what was sent over all these rails
  double bytes_per_s = 0;                    ///< as estimated; median over the peers
  std::int64_t changes = 0;                  ///< of the rate, over all peers
  std::optional<double> prediction_error{};  ///< |predicted - actual| / actual, median
  double backlog_s = 0;                      ///< mean time it was busy when it was asked for
};

struct statistics_dump {
  fingerprint machine_id{};
  std::string written_at{};  ///< UTC, 2026-01-31T12:00:00Z
  std::int64_t merges = 0;
  double merge_cost_s = 0;  ///< of all merges together
  std::vector<context_statistics> contexts{};
  std::vector<rail_statistics> rails{};
};

}  // namespace railpass::select
