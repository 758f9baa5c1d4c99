// SPDX-License-Identifier: BSL-1.0
//
// Hangs: what the ranks of a killed run were doing, and whether an arm is to blame. Pure logic; the
// records are written by lib/runtime/halt_watch.hpp.
#pragma once

#include "railpass/base/units.hpp"
#include "railpass/knowledge/quarantine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass::knowledge {

/// The last call that a rank began on a communicator, and whether the rank was still inside.
struct halted_call {
  std::string communicator{};  ///< a number, equal on all its ranks, and in no other run
  std::string name{};          ///< as the program named the communicator
  int rank = 0, num_ranks = 2;
  std::int64_t call = 0;  ///< number of the call, equal on all ranks; 0: no call
  std::string collective{};
  std::string arm{};  ///< of railpass, which the rank was inside; empty: inside no such arm
  std::int64_t bytes = 0;
  double unchanged_s = 0;  ///< without any progress
  friend bool operator==(const halted_call&, const halted_call&) = default;
};

/// The record of a process that made no progress.
struct halted_rank {
  std::string mpi_library{};  ///< first line of MPI_Get_library_version
  std::string railpass_version{};
  std::string host{};
  std::string written_at{};  ///< UTC
  double period_s = 60;      ///< between two writings
  std::vector<halted_call> calls{};
  friend bool operator==(const halted_rank&, const halted_rank&) = default;
};

/// A hang of a communicator's ranks.
struct hang {
  std::string text{};                    ///< a sentence for the user
  std::optional<quarantined> culprit{};  ///< the arm, if all ranks were inside
};

namespace detail {

/// The ranks of one communicator. The records must outlive this object.
class halted_communicator {
 public:
  void add(const halted_rank& by, const halted_call& c) {
    states_.insert_or_assign(c.rank, state{&by, &c});
  }

  std::optional<hang> judge(std::span<const quarantined> before) const {
    const state* const waits = longest_in_first_call();
    if (!waits || waits->call->unchanged_s < waits->by->period_s) return std::nullopt;
    const halted_call& c = *waits->call;
    const int inside = ranks_inside(c);
    if (inside < c.num_ranks) return hang{.text = text_of_absence(c, inside), .culprit = {}};
    if (!all_are_stuck()) return std::nullopt;
    return blame(*waits, before);
  }

 private:
  struct state {
    const halted_rank* by = nullptr;
    const halted_call* call = nullptr;
  };
  static constexpr double slowest_bytes_per_s = 1e6;  // no healthy network is slower
  static constexpr int most_named = 8;

  // Ranks in later calls wait for ranks in earlier calls.
  const state* longest_in_first_call() const {
    const state* found = nullptr;
    for (const auto& [rank, s] : states_) {
      if (s.call->arm.empty()) continue;
      if (!found || s.call->call < found->call->call ||
          (s.call->call == found->call->call && s.call->unchanged_s > found->call->unchanged_s))
        found = &s;
    }
    return found;
  }

  static bool is_in(const halted_call& one, const halted_call& c) {
    return one.call == c.call && one.collective == c.collective && one.arm == c.arm;
  }
  bool is_inside(int rank, const halted_call& c) const {
    const auto known = states_.find(rank);
    return known != states_.end() && is_in(*known->second.call, c);
  }
  int ranks_inside(const halted_call& c) const {
    return int(
        std::ranges::count_if(states_, [&](const auto& s) { return is_in(*s.second.call, c); }));
  }
  // A message of this length may be all that a slow network transfers meanwhile.
  bool all_are_stuck() const {
    return std::ranges::all_of(states_, [](const auto& one) {
      const state& s = one.second;
      return s.call->unchanged_s >=
             2 * s.by->period_s + double(s.call->bytes) / slowest_bytes_per_s;
    });
  }

  std::vector<std::string> hosts() const {
    std::vector<std::string> all;
    for (const auto& [rank, s] : states_) all.push_back(s.by->host);
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    return all;
  }
  int most_ranks_of_a_host() const {
    std::map<std::string, int> counts;
    int most = 1;
    for (const auto& [rank, s] : states_) most = std::max(most, ++counts[s.by->host]);
    return most;
  }

  static std::string text_of_call(const halted_call& c) {
    std::string text = "call " + std::to_string(c.call) + " (" + c.collective;
    if (c.bytes > 0) text += " of " + std::to_string(c.bytes) + " bytes";
    return text + (c.arm.empty() ? ")" : ", arm " + c.arm + ")");
  }
  static std::string text_of_hosts(const std::vector<std::string>& all) {
    std::string text;
    const std::size_t named = std::min(all.size(), std::size_t(most_named));
    for (std::size_t i = 0; i < named; ++i) text.append(i == 0 ? "" : ", ").append(all[i]);
    return all.size() > named ? text + " and " + std::to_string(all.size() - named) + " more"
                              : text;
  }
  static std::string text_of_communicator(const halted_call& c) {
    return "ranks of communicator '" + c.name + "' ";
  }

  std::string text_of(int rank) const {
    const std::string subject = "rank " + std::to_string(rank);
    const auto known = states_.find(rank);
    if (known == states_.end()) return subject + " left no record";
    const auto& [by, call] = known->second;
    const std::string on = subject + " on host " + by->host;
    if (call->call == 0) return on + " had begun no call";
    return call->arm.empty()
               ? on + " began " + text_of_call(*call) + " last and was inside no arm of railpass"
               : on + " was inside " + text_of_call(*call);
  }
  std::string text_of_absence(const halted_call& c, int inside) const {
    std::string text = "an earlier run ended while " + std::to_string(inside) + " of " +
                       std::to_string(c.num_ranks) + " " + text_of_communicator(c) +
                       "waited inside " + text_of_call(c) + " for more than " +
                       format_seconds(c.unchanged_s) + ":";
    const int absent = c.num_ranks - inside;
    int named = 0;
    for (int rank = 0; named < std::min(absent, most_named); ++rank)
      if (!is_inside(rank, c)) text += (named++ == 0 ? " " : "; ") + text_of(rank);
    if (absent > named)
      text += "; " + std::to_string(absent - named) + " more ranks were elsewhere";
    return text;
  }

  hang blame(const state& waits, std::span<const quarantined> before) const {
    const halted_call& c = *waits.call;
    const std::vector<std::string> on = hosts();
    quarantined q{
        .mpi_library = waits.by->mpi_library,
        .railpass_version = waits.by->railpass_version,
        .found_at = waits.by->written_at,
        .collective = c.collective,
        .algorithm = c.arm.substr(0, c.arm.find('+')),
        .variant = c.arm,
        .num_ranks = c.num_ranks,
        .ranks_per_node = most_ranks_of_a_host(),
        .bytes = c.bytes,
        .difference = "all ranks hung, without progress for " + format_seconds(c.unchanged_s),
        .hung_on = on};
    std::string text = "an earlier run ended while all " + std::to_string(c.num_ranks) + " " +
                       text_of_communicator(c) + "were inside " + text_of_call(c) +
                       " without progress for more than " + format_seconds(c.unchanged_s) + " on " +
                       text_of_hosts(on);
    const auto other = std::ranges::find_if(
        before, [&](const quarantined& b) { return is_of_other_arm_there(b, q); });
    if (other != before.end())
      return {text + "; " + other->algorithm + " of " + other->collective +
                  " hung there, too, so these hosts or their network may be faulty: railpass puts "
                  "nothing more into quarantine",
              std::nullopt};
    text += "; no later run uses " + q.algorithm + " for " + q.collective +
            " (railpass quarantine list)";
    return {std::move(text), std::move(q)};
  }
  static bool is_of_other_arm_there(const quarantined& b, const quarantined& q) {
    return (b.collective != q.collective || b.algorithm != q.algorithm) &&
           std::ranges::any_of(b.hung_on, [&](const std::string& host) {
             return std::ranges::find(q.hung_on, host) != q.hung_on.end();
           });
  }

  std::map<int, state> states_;  // by rank
};

}  // namespace detail

/// The hangs of one run: at most one for each communicator. An arm is the culprit only if each rank
/// was inside the same call by that arm, and none made progress for two periods and for the time in
/// which a slow network transfers the message. Otherwise a sentence names the ranks for which the
/// others waited, if any waited for a period. `before`: records so far. If another arm hung on one
/// of the hosts, no arm is the culprit.
inline std::vector<hang> hangs_of(std::span<const halted_rank> run,
                                  std::span<const quarantined> before) {
  std::map<std::string, detail::halted_communicator> all;
  for (const halted_rank& r : run)
    for (const halted_call& c : r.calls) all[c.communicator].add(r, c);
  std::vector<hang> found;
  for (const auto& [id, one] : all)
    if (std::optional<hang> h = one.judge(before)) found.push_back(std::move(*h));
  return found;
}

}  // namespace railpass::knowledge
