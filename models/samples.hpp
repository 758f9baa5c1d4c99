// SPDX-License-Identifier: BSL-1.0
//
// Measurements to which models are fitted. Plain data; lib/files reads and writes them.
#pragma once

#include "models/profile.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railpass {

enum class link_class : std::uint8_t { same_node, across_nodes };

/// Medians for messages of one size on one link class, one message at a time.
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

/// Work on a rank's own memory, or a transfer by all ranks of a node at once.
struct local_sample {
  std::int64_t bytes = 0;
  double seconds = 0;
};

/// Whether ranks of the call sent each other messages over such links.
inline bool uses_link(const collective_time& t, link_class link) {
  return link == link_class::across_nodes ? t.num_ranks > t.ranks_per_node
                                          : std::min(t.num_ranks, t.ranks_per_node) > 1;
}

/// The input of railpass/fit: the measurements of one or several files.
struct measurements {
  std::vector<link_sample> links{};
  std::vector<stream_sample> streams{};
  /// Largest message that leaves before its receiver has posted, if measured.
  std::map<link_class, std::int64_t> eager_limits_bytes{};
  std::vector<local_sample> copies{};
  std::vector<local_sample> reductions{};
  /// Each rank of a node has shown data in a slot to the next rank, which has copied them.
  std::vector<local_sample> handovers{};
  /// The same among the ranks under each cache, if a node has several caches.
  std::vector<local_sample> near_handovers{};
  /// Each rank has opened its memory to the next rank, and the next rank has copied and confirmed.
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

/// The content of files from `railpass sample`. `collectives` holds times of the native arms.
struct sample_set {
  fingerprint machine_id{};
  std::string sampled_at{};  ///< UTC, as profile::sampled_at
  measurements measured{};
};

/// One row of `railpass bench`.
struct bench_result {
  std::string collective{};
  std::int64_t bytes = 0;
  std::string arm{};  ///< "native", "tuned", "native:ALGORITHM[:SEGMENT]" or an arm's name
  double median_s = 0;
  double p90_s = 0;
  std::int64_t runs = 0;
  std::optional<double> ratio_to_native{};  ///< of medians of the same run
  std::optional<double> ratio_low{};        ///< bootstrap interval of ratio_to_native
  std::optional<double> ratio_high{};
  std::optional<double> ratio_to_best{};  ///< to the fastest arm measured in the same run
  std::optional<double> best_low{};       ///< bootstrap interval of ratio_to_best; only for tuned
  std::optional<double> best_high{};
  std::optional<double> spread_s{};  ///< robust spread of the runs
  /// For a bench over several launches: the median of each launch (median_s is their median) and
  /// the ratio to native of each launch, on which the intervals are based.
  std::vector<double> launch_medians_s{};
  std::vector<double> launch_ratios{};
};

/// How often the time was measured independently: calls of one launch share its placement.
inline std::int64_t independent_runs(const bench_result& r) {
  return r.launch_medians_s.empty() ? r.runs : std::int64_t(r.launch_medians_s.size());
}

/// Whether an arm of a bench is an algorithm of the MPI library's own that the bench forced. Such
/// an arm has no schedule, and no call of railpass can take it.
inline bool is_own_algorithm(std::string_view arm) { return arm.starts_with("native:"); }

/// An algorithm of the MPI library's own that a bench could force.
struct own_algorithm {
  std::string collective{};
  std::string name{};       ///< the library's: "binomial"
  std::int64_t number = 0;  ///< the library's
  friend bool operator==(const own_algorithm&, const own_algorithm&) = default;
};

/// The promise for a converged call, compared with another call that takes `other_s`. The 95 %
/// interval of the ratio ends below 1 + the largest of 2 %, 100 ns and three standard errors.
inline bool no_slower(double low, double high, double other_s) {
  const double standard_error = (high - low) / (2 * 1.96);
  return high < 1 + std::max({0.02, 100e-9 / other_s, 3 * standard_error});
}

/// `railpass bench --learning`: calls of a context without any knowledge at the start. Each call
/// runs next to a call of the MPI library and a call of the arm that proved the fastest. Ratios are
/// geometric means over the calls, so that one slow call does not dominate.
struct learning_result {
  std::string collective{};
  std::int64_t bytes = 0;
  std::int64_t first_call = 1;  ///< counted from 1
  std::int64_t calls = 0;
  double total_s = 0;
  double native_total_s = 0;
  double ratio_to_native = 0;
  std::optional<double> native_low{};  ///< 95 % interval of ratio_to_native
  std::optional<double> native_high{};
  std::string best_arm{};
  double best_total_s = 0;
  double ratio_to_best = 0;
  double worst_call_s = 0;  ///< the slowest of the calls
  double best_median_s = 0;
  double best_worst_call_s = 0;
};

/// The content of files from `railpass bench --json`.
struct bench_results {
  fingerprint machine_id{};
  std::string measured_at{};  ///< UTC, as profile::sampled_at
  int num_ranks = 0;
  int ranks_per_node = 1;
  int ranks_per_cache = 0;                     ///< see cost_query
  std::map<std::string, std::string> notes{};  ///< more about the environment
  std::vector<bench_result> results{};
  std::vector<learning_result> learning{};
  std::vector<own_algorithm> own_algorithms{};  ///< those that were forced
};

}  // namespace railpass
