// SPDX-License-Identifier: BSL-1.0
//
// Computes the benefit of tuning from a statistics dump, for the end of a run and for `railpass
// stats`.
#pragma once

#include "railpass/base/units.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace railpass::select {

/// An estimate with the standard deviation of its error.
struct estimate {
  double value = 0;
  double deviation = 0;
};

/// The time that the context's calls saved against the MPI library's own collective, or a set's
/// first version; negative: lost. The estimate comes from pairs of an arm's calls with native's. An
/// arm with too few of them is compared with the mean of native's samples, which saw the machine at
/// other times: its error is so large that it decides no verdict alone, and the errors of several
/// such arms add up. Empty if such arms have more than half of the calls and more than 32, or
/// if native was not timed where needed.
inline std::optional<estimate> saved_s(const context_statistics& context) {
  constexpr std::int64_t few_calls = 32;
  const auto native = std::ranges::find(context.arms, context.baseline, &arm_statistics::arm);
  if (native == context.arms.end()) return std::nullopt;
  std::int64_t unpaired = 0;
  double saved = 0, variance = 0, unpaired_error = 0;
  for (const arm_statistics& a : context.arms) {
    if (&a == &*native || a.calls == 0) continue;
    if (a.pairs && a.pairs->deviation) {
      const double ratio = std::exp(a.pairs->gain);
      saved += a.time_s * (ratio - 1);
      variance += std::pow(a.time_s * ratio * *a.pairs->deviation, 2);
    } else if (native->times.mean_s == 0) {
      return std::nullopt;
    } else {
      const double of_arm = double(a.calls) * native->times.mean_s - a.time_s;
      saved += of_arm;
      unpaired_error += std::max(std::abs(of_arm), a.time_s / 2);
      unpaired += a.calls;
    }
  }
  if (unpaired > few_calls && unpaired > context.calls / 2) return std::nullopt;
  return estimate{saved, std::hypot(std::sqrt(variance), unpaired_error)};
}

/// The overhead of railpass in a context's calls, before and after their arms. The lower bound is
/// rank 0's; the upper bound assumes that all ranks share a core one after the other.
struct own_part {
  double least_s = 0, most_s = 0;
};
inline own_part own_part_of(const context_statistics& context, int cores_per_host) {
  const double of_rank_s = double(context.calls) * context.own_s.value_or(0);
  const double ranks_of_core =
      cores_per_host > 0 ? double(context.ranks_per_node) / double(cores_per_host) : 1;
  return {of_rank_s, of_rank_s * std::max(1.0, ranks_of_core)};
}

inline std::string range_of(const own_part& own) {
  const std::string most = format_seconds(own.most_s);
  return own.most_s < 1.05 * own.least_s ? most : format_seconds(own.least_s) + " to " + most;
}

/// "broadcast of 64KiB to below 128KiB on 8 ranks", "gatherv of about 12KiB (at most 64KiB) on 8
/// ranks"
inline std::string name_of(const context_statistics& c) {
  const std::string sizes =
      c.collective == "barrier" || is_set_context(c) ? ""
      : c.mean_bytes
          ? " of about " + format_about_bytes(*c.mean_bytes) +
                (double(c.to_bytes) > 1.5 * *c.mean_bytes
                     ? " (at most " + format_about_bytes(double(c.to_bytes)) + ")"
                     : "")
          : " of " + format_bytes(c.from_bytes) + " to below " + format_bytes(c.to_bytes + 1);
  return c.collective + sizes + " on " + std::to_string(c.num_ranks) + " ranks";
}

/// Whether settings pin the arm of all calls, so that native does not run.
inline bool is_pinned(const context_statistics& c) { return c.policy == "fixed"; }

/// The benefit of tuning for the run, and its basis.
struct worth {
  double saved_s = 0;                    ///< after subtracting railpass' overhead
  double least_s = 0, most_s = 0;        ///< the 95 % interval
  double learning_s = 0;                 ///< synchronisations and trials, included
  own_part own{};                        ///< included
  bool overlapped = false;               ///< whether overlap of calls dominates the interval
  std::int64_t pinned = 0, unknown = 0;  ///< contexts that are not included
  double unknown_s = 0;                  ///< time of calls in the unknown contexts
  /// Significant gains, the largest first.
  std::vector<std::pair<double, const context_statistics*>> gains{};
};

/// The result points into `dump`.
inline worth worth_of(const statistics_dump& dump) {
  worth all{.learning_s = dump.merge_cost_s};
  // One rank's clock measured the synchronisations; the program may or may not have waited for
  // them.
  double variance = std::pow(dump.merge_cost_s / 2, 2), saved = -dump.merge_cost_s,
         gain_beside_s = 0, loss_beside_s = 0;
  for (const context_statistics& c : dump.contexts) {
    all.learning_s += c.exploration_cost_s;
    if (const auto here = saved_s(c)) {
      // Time saved or lost while other calls are running may not be the program's.
      const double beside_s = std::min(c.time_s * c.overlapped_share, std::abs(here->value));
      (here->value > 0 ? gain_beside_s : loss_beside_s) += beside_s;
      const own_part part = own_part_of(c, dump.machine_id.cores_per_host);
      all.own.least_s += part.least_s;
      all.own.most_s += part.most_s;
      saved += here->value;
      variance += here->deviation * here->deviation;
      const double gain_s = here->value - part.most_s;
      if (gain_s > 1.96 * here->deviation + beside_s) all.gains.emplace_back(gain_s, &c);
    } else {
      ++(is_pinned(c) ? all.pinned : all.unknown);
      if (!is_pinned(c)) all.unknown_s += c.time_s;
    }
  }
  std::ranges::stable_sort(all.gains, std::greater{}, [](const auto& g) { return g.first; });
  const double reach = 1.96 * std::sqrt(variance);
  all.saved_s = saved - (all.own.least_s + all.own.most_s) / 2;
  all.least_s = saved - gain_beside_s - all.own.most_s - reach;
  all.most_s = saved + loss_beside_s - all.own.least_s + reach;
  all.overlapped = gain_beside_s > reach;
  return all;
}

/// A paragraph in one line: whether tuning paid, what was tuned, its time, the largest gains.
inline std::string summary_of(const statistics_dump& dump) {
  if (dump.contexts.empty())
    return "nothing was tuned: rank 0 led no communicator with more than a few collective calls, "
           "or "
           "settings pinned them or left them to the MPI library.";
  std::vector<std::string> collectives;
  std::int64_t calls = 0;
  double time_s = 0;
  for (const context_statistics& c : dump.contexts) {
    if (std::ranges::find(collectives, c.collective) == collectives.end())
      collectives.push_back(c.collective);
    calls += c.calls;
    time_s += c.time_s;
  }
  const worth all = worth_of(dump);
  const auto sets = std::ranges::count_if(dump.contexts, is_set_context);
  const std::string plain =  // what runs without railpass
      sets == 0 ? "the MPI library's own collectives"
      : sets == std::ptrdiff_t(dump.contexts.size())
          ? "the first versions of function sets"
          : "the MPI library's own collectives and the first versions of function sets";
  std::string text;
  const bool all_pinned = all.pinned == std::int64_t(dump.contexts.size()),
             nothing_known = all.pinned + all.unknown == std::int64_t(dump.contexts.size());
  if (all_pinned) {
    text = "settings pinned all arms, so " + plain + " did not run, and nothing can be compared. ";
  } else if (nothing_known) {
    text = "cannot tell whether tuning paid: " + plain + " were timed too seldom";
  } else if (all.least_s <= 0 && all.most_s >= 0) {
    text = "cannot tell whether tuning paid: between " + format_seconds(all.least_s) + " and " +
           format_seconds(all.most_s) + " saved (95 % interval" +
           (all.overlapped ? ", as calls of different ranks overlapped" : "") + ")";
  } else {
    text = std::string(all.saved_s > 0 ? "faster" : "slower") + " than with " + plain + ", by " +
           format_seconds(std::abs(all.saved_s)) + " (95 % interval: " +
           format_seconds(std::min(std::abs(all.least_s), std::abs(all.most_s))) + " to " +
           format_seconds(std::max(std::abs(all.least_s), std::abs(all.most_s))) + ")";
  }
  if (!all_pinned)
    text +=
        ", " + format_seconds(all.learning_s) + " spent on learning" +
        (all.own.most_s > 0 ? " and " + range_of(all.own) + " of railpass's own overhead" : "") +
        " counted in. ";
  text += std::to_string(calls) + " calls of " + std::to_string(collectives.size()) +
          (all_pinned ? " " : " tuned ") + (sets == 0 ? "collectives (" : "operations (");
  for (const std::string& name : collectives) text += (&name == &collectives[0] ? "" : ", ") + name;
  text += ") took " + format_seconds(time_s) + " in " + std::to_string(dump.contexts.size()) +
          " contexts.";
  if (all.pinned > 0 && !all_pinned)
    text +=
        " " + std::to_string(all.pinned) + " contexts whose arms settings pinned are not counted.";
  if (all.unknown > 0 && !nothing_known)
    text += " " + std::to_string(all.unknown) + " contexts in which " +
            (sets == 0 ? "the MPI library's own was" : plain + " were") + " timed too seldom (" +
            format_seconds(all.unknown_s) + ") are not counted.";
  if (!all.gains.empty()) text += " Largest gains:";
  for (std::size_t i = 0; i < std::min<std::size_t>(3, all.gains.size()); ++i)
    text += std::string(i ? "; " : " ") + name_of(*all.gains[i].second) + ", " +
            format_seconds(all.gains[i].first) + " by " + all.gains[i].second->current_arm;
  if (!all.gains.empty()) text += '.';
  return text;
}

}  // namespace railpass::select
