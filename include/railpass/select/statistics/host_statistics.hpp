// SPDX-License-Identifier: BSL-1.0
//
// Hosts that come late to calls, and hosts whose ranks wait for a core, from the ledgers of all
// ranks; hosts whose links are slow, from the exchanges of all hosts.
//
// In each batch of calls or trial of links a host is compared with the mean of all other hosts.
// Intervals come from the differences of the batches, by Student's distribution. They hold for all
// hosts and all kinds of differences at once (Bonferroni's inequality).
#pragma once

#include "railpass/base/statistics.hpp"
#include "railpass/base/student.hpp"
#include "railpass/select/statistics/dump.hpp"
#include "railpass/select/statistics/link_times.hpp"
#include "railpass/select/statistics/rank_ledger.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace railpass::select {

/// The largest probability that a run whose hosts are alike names a host.
inline constexpr double most_false_names = 0.01;

namespace detail {

/// [h][b]: of host h in batch or trial b; not a number: unknown.
using values_of_hosts = std::vector<std::vector<double>>;

inline constexpr std::size_t least_batches = 4;

/// host_of_rank has numbers from 0 on, each first used after all smaller numbers.
inline std::vector<host_statistics> unmeasured_hosts(std::span<const int> host_of_rank) {
  std::vector<host_statistics> hosts;
  for (std::size_t r = 0; r < host_of_rank.size(); ++r)
    if (host_of_rank[r] == int(hosts.size()))
      hosts.push_back({.host = host_of_rank[r], .first_rank = int(r)});
    else
      ++hosts[std::size_t(host_of_rank[r])].num_ranks;
  return hosts;
}

/// The number of batches from the first on that have the same calls on all ranks.
inline std::size_t common_batches(std::span<const rank_ledger> ledgers) {
  const auto first = ledgers.front().batches();
  std::size_t common = first.size();
  for (const rank_ledger& l : ledgers) {
    const auto mine = l.batches();
    common = std::min(common, mine.size());
    for (std::size_t b = 0; b < common; ++b)
      if (mine[b].calls != first[b].calls) common = b;
  }
  return common;
}

/// The means of a value over the ranks of each host. value(batch): of one rank.
template <class Value>
values_of_hosts means_of(std::span<const rank_ledger> ledgers, std::span<const int> host_of_rank,
                         std::span<const host_statistics> hosts, const Value& value) {
  const std::size_t n = common_batches(ledgers);
  values_of_hosts means(hosts.size(), std::vector<double>(n));
  for (std::size_t r = 0; r < ledgers.size(); ++r) {
    const auto h = std::size_t(host_of_rank[r]);
    for (std::size_t b = 0; b < n; ++b)
      means[h][b] += value(ledgers[r].batches()[b]) / hosts[h].num_ranks;
  }
  return means;
}

/// The values of `host` less the mean of all other hosts, in batches that all hosts know.
inline std::vector<double> differences_of(const values_of_hosts& values, std::size_t host) {
  std::vector<double> known;
  for (std::size_t b = 0; b < values[host].size(); ++b) {
    double others = 0;
    for (std::size_t h = 0; h < values.size(); ++h) others += h == host ? 0 : values[h][b];
    const double difference = values[host][b] - others / double(values.size() - 1);
    if (!std::isnan(difference)) known.push_back(difference);
  }
  return known;
}

inline std::optional<host_difference> difference_of(const values_of_hosts& values, std::size_t host,
                                                    double threshold) {
  const std::vector<double> all = differences_of(values, host);
  if (all.size() < least_batches) return std::nullopt;
  constexpr double kinds = 3, sides = 2;
  const double chance = sides * most_false_names / (kinds * double(values.size()));
  const double n = double(all.size()), middle = mean(all);
  double squares = 0;
  for (const double d : all) squares += (d - middle) * (d - middle);
  const double reach = students_t(n - 1, chance) * std::sqrt(squares / (n - 1) / n);
  return host_difference{.value = middle,
                         .low = middle - reach,
                         .high = middle + reach,
                         .is_named = middle - reach > threshold};
}

inline void compare_ledgers(std::vector<host_statistics>& hosts,
                            std::span<const rank_ledger> ledgers,
                            std::span<const int> host_of_rank) {
  constexpr double late_share = 0.05;  // of the time from call to call
  constexpr double starved_share = 0.1;
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const auto means_of = [&](const auto& value) {
    return detail::means_of(ledgers, host_of_rank, hosts, value);
  };
  using batch = const ledger_batch&;
  const auto outside = means_of([](batch b) { return b.outside_s / double(b.calls); });
  const auto passed = means_of([](batch b) { return b.passed_s / double(b.calls); });
  const auto starved = means_of(
      [](batch b) { return b.since_before_s > 0 ? b.starved_s / b.since_before_s : unknown; });
  if (passed.front().empty()) return;
  double call_s = 0;
  for (const auto& batches : passed) call_s += mean(batches) / double(hosts.size());
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    hosts[h].late_s = difference_of(outside, h, late_share * call_s);
    hosts[h].starved_share = difference_of(starved, h, starved_share);
  }
}

/// A host without cores exchanges slowly for that reason, so its link stays unknown.
inline void compare_links(std::vector<host_statistics>& hosts, std::span<const link_times> links) {
  constexpr double factor = 1.2;
  values_of_hosts logs(hosts.size(), std::vector<double>(link_times::num_trials));
  for (std::size_t h = 0; h < hosts.size(); ++h)
    for (std::size_t t = 0; t < link_times::num_trials; ++t)
      logs[h][t] = std::log(links[h].quickest_s(t));
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (hosts[h].starved_share && hosts[h].starved_share->is_named) continue;
    hosts[h].link_factor = difference_of(logs, h, std::log(factor));
    if (host_difference* const d = hosts[h].link_factor ? &*hosts[h].link_factor : nullptr)
      for (double* const x : {&d->value, &d->low, &d->high}) *x = std::exp(*x);
  }
}

}  // namespace detail

/// The hosts of MPI_COMM_WORLD, by number, from the ledgers of all ranks and the link times of all
/// hosts. At least two hosts.
inline std::vector<host_statistics> hosts_of(std::span<const rank_ledger> ledgers,
                                             std::span<const int> host_of_rank,
                                             std::span<const link_times> links) {
  std::vector<host_statistics> hosts = detail::unmeasured_hosts(host_of_rank);
  detail::compare_ledgers(hosts, ledgers, host_of_rank);
  detail::compare_links(hosts, links);
  return hosts;
}

}  // namespace railpass::select
