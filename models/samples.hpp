// SPDX-License-Identifier: BSL-1.0
//
// Measurements that models are fitted from. Plain data; lib/files reads and writes it.
#pragma once

#include "models/profile.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace railpass {

enum class link_class : std::uint8_t { same_node, across_nodes };

/// Medians for messages of one size on one link class, one at a time.
struct link_sample {
  link_class link = link_class::across_nodes;
  std::int64_t bytes = 0;
  double one_way_s = 0;                        ///< half a round trip
  std::optional<double> spread_s{};            ///< robust spread of the values behind one_way_s
  std::optional<double> rendezvous_s{};        ///< as one_way_s, sent in synchronous mode
  std::optional<double> send_overhead_s{};     ///< CPU time of the sender
  std::optional<double> receive_overhead_s{};  ///< CPU time of the receiver
  std::optional<double> exchange_s{};          ///< see link_model::exchange
  std::optional<double> shift_s{};             ///< see link_model::shift
  std::optional<double> flow_s{};              ///< see link_model::flow
  std::optional<double> crowd_s{};             ///< see link_model::crowd
};

/// Messages of one size sent one after the other without waiting for answers.
struct stream_sample {
  link_class link = link_class::across_nodes;
  std::int64_t bytes = 0;
  double busy_s = 0;  ///< time per message
};

/// Work on a rank's own memory, or what all ranks of a node pass on at once.
struct local_sample {
  std::int64_t bytes = 0;
  double seconds = 0;
};

/// What railpass/fit takes: one file's measurements, or several files' put together.
struct measurements {
  std::vector<link_sample> links{};
  std::vector<stream_sample> streams{};
  /// Largest message that leaves before its receiver has posted, where that was measured.
  std::map<link_class, std::int64_t> eager_limits_bytes{};
  std::vector<local_sample> copies{};
  std::vector<local_sample> reductions{};
  /// Each rank of a node has shown the next one something in a cell, which has copied it.
  std::vector<local_sample> handovers{};
  /// The same among the ranks under each cache, where a node's ranks use several.
  std::vector<local_sample> near_handovers{};
  /// Each has opened its memory to the next one, which has copied it, and has heard so.
  std::vector<local_sample> single_copies{};
  std::vector<collective_time> collectives{};
  /// See profile::core_share.
  std::optional<double> core_share{};

  void append(const measurements& more) {
    if (more.core_share) core_share = std::min(*more.core_share, core_share.value_or(1));
    links.insert(links.end(), more.links.begin(), more.links.end());
    eager_limits_bytes.insert(more.eager_limits_bytes.begin(), more.eager_limits_bytes.end());
    streams.insert(streams.end(), more.streams.begin(), more.streams.end());
    copies.insert(copies.end(), more.copies.begin(), more.copies.end());
    reductions.insert(reductions.end(), more.reductions.begin(), more.reductions.end());
    handovers.insert(handovers.end(), more.handovers.begin(), more.handovers.end());
    near_handovers.insert(near_handovers.end(), more.near_handovers.begin(),
                          more.near_handovers.end());
    single_copies.insert(single_copies.end(), more.single_copies.begin(), more.single_copies.end());
    collectives.insert(collectives.end(), more.collectives.begin(), more.collectives.end());
  }
};

/// What `railpass sample` writes. `collectives` holds the native arms' times there.
struct sample_set {
  fingerprint machine_id{};
  std::string sampled_at{};  ///< UTC, as profile::sampled_at
  measurements measured{};
};

/// One row of `railpass bench`.
struct bench_result {
  std::string collective{};
  std::int64_t bytes = 0;
  std::string arm{};  ///< "native", "tuned" or an arm's name
  double median_s = 0;
  double p90_s = 0;
  std::int64_t runs = 0;
  std::optional<double> ratio_to_native{};  ///< of medians of the same run
  std::optional<double> ratio_low{};        ///< bootstrap interval of that ratio
  std::optional<double> ratio_high{};
  std::optional<double> ratio_to_best{};  ///< to the fastest arm measured in the same run
  std::optional<double> best_low{};       ///< bootstrap interval of that ratio; of tuned
  std::optional<double> best_high{};
  std::optional<double> spread_s{};  ///< robust spread of the runs
  /// Of a bench over several launches, by launch: the medians, which median_s is the median of, and
  /// the ratios to native, over which the intervals are.
  std::vector<double> launch_medians_s{};
  std::vector<double> launch_ratios{};
};

/// The promise of a settled call: the 95 % interval of its time over another's, which takes
/// `other_s`, ends below 1 + the largest of 2 %, 100 ns and three standard errors.
inline bool no_slower(double low, double high, double other_s) {
  const double standard_error = (high - low) / (2 * 1.96);
  return high < 1 + std::max({0.02, 100e-9 / other_s, 3 * standard_error});
}

/// `railpass bench --learning`: calls of a context that knew nothing before the first one, each
/// taken beside one of the MPI library's and one of the arm that proved the fastest. Ratios are
/// geometric means over the calls, so that one slow call does not decide.
struct learning_result {
  std::string collective{};
  std::int64_t bytes = 0;
  std::int64_t first_call = 1;  ///< counted from 1
  std::int64_t calls = 0;
  double total_s = 0;
  double native_total_s = 0;
  double ratio_to_native = 0;
  double native_low = 0;  ///< 95 % interval of that ratio
  double native_high = 0;
  std::string best_arm{};
  double best_total_s = 0;
  double ratio_to_best = 0;
  double worst_call_s = 0;  ///< the slowest of the calls
  double best_median_s = 0;
  double best_worst_call_s = 0;
};

/// What `railpass bench --json` writes.
struct bench_results {
  fingerprint machine_id{};
  std::string measured_at{};  ///< UTC, as profile::sampled_at
  int num_ranks = 0;
  int ranks_per_node = 1;
  int ranks_per_cache = 0;                     ///< see cost_query
  std::map<std::string, std::string> notes{};  ///< more about the environment
  std::vector<bench_result> results{};
  std::vector<learning_result> learning{};
};

}  // namespace railpass
