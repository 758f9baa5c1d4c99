// SPDX-License-Identifier: BSL-1.0
#include "lib/report/schedule_work.hpp"

#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace railpass::internal::report {

double messages_of(const arm& a, int num_ranks, std::int64_t bytes) {
  double segments = 1;
  for (int i = 0; i < a.base->num_parameters(); ++i)
    if (a.base->parameter_list[std::size_t(i)].in_bytes && a.values[std::size_t(i)] > 0)
      segments += double(bytes) / double(a.values[std::size_t(i)]);
  // Trees send each segment once per rank, rings of an all_reduce a block to each neighbour.
  return double(num_ranks) * (segments + num_ranks);
}

std::vector<rank_work> work_of(const simulation& run) {
  std::vector<rank_work> work(run.finish_s.size());
  std::vector<const timeline_event*> events;
  for (const timeline_event& e : run.events) events.push_back(&e);
  std::ranges::stable_sort(events, {}, &timeline_event::begin_s);
  struct covered {
    double until_s[3] = {0, 0, 0};
  };
  std::vector<covered> seen(work.size());
  for (const timeline_event* e : events) {
    rank_work& w = work[std::size_t(e->rank)];
    const int row = gives(e->kind) ? 0 : brings(e->kind) ? 1 : 2;
    double& until_s = seen[std::size_t(e->rank)].until_s[row];
    const double more_s = std::max(0.0, e->end_s - std::max(e->begin_s, until_s));
    until_s = std::max(until_s, e->end_s);
    (row == 0 ? w.sending_s : row == 1 ? w.receiving_s : w.computing_s) += more_s;
    if (row == 0) w.sent_bytes += e->bytes;
    if (row == 1) w.received_bytes += e->bytes;
  }
  return work;
}

bottleneck find_bottleneck(std::span<const rank_work> work) {
  bottleneck found;
  for (std::size_t r = 0; r < work.size(); ++r) {
    const auto consider = [&](const char* doing, double busy_s, std::int64_t bytes) {
      if (busy_s > found.busy_s) found = {r, doing, busy_s, bytes};
    };
    consider("sending", work[r].sending_s, work[r].sent_bytes);
    consider("receiving", work[r].receiving_s, work[r].received_bytes);
    consider("computing", work[r].computing_s, 0);
  }
  return found;
}

namespace {

constexpr std::size_t work_columns = 6;

// What a rank does, as the table shows it but for its number.
std::array<double, work_columns> numbers_of(const rank_work& w, double finish_s) {
  return {finish_s,    double(w.sent_bytes), double(w.received_bytes),
          w.sending_s, w.receiving_s,        w.computing_s};
}

}  // namespace

table work_table(std::span<const rank_work> work, const simulation& run,
                 const std::map<std::size_t, std::string>& named, bool in_full) {
  constexpr std::size_t most_ranks_in_full = 32;
  in_full = in_full || work.size() <= most_ranks_in_full;
  table lines({in_full ? "rank" : "ranks", "done after", "sends", "receives", "sending",
               "receiving", "computing"});
  const auto add = [&](const std::string& name, const std::array<double, work_columns>& n) {
    std::vector<std::string> row{name, format_seconds(n[0]), format_bytes(std::int64_t(n[1])),
                                 format_bytes(std::int64_t(n[2]))};
    for (std::size_t c = 3; c < work_columns; ++c)
      row.push_back(run.time_s > 0 ? percent(n[c] / run.time_s, 0) : std::string("-"));
    lines.add(std::move(row));
  };
  if (in_full) {
    for (std::size_t r = 0; r < work.size(); ++r)
      add(std::to_string(r), numbers_of(work[r], run.finish_s[r]));
    return lines;
  }
  std::array<std::vector<double>, work_columns> columns;
  for (std::size_t r = 0; r < work.size(); ++r) {
    const auto numbers = numbers_of(work[r], run.finish_s[r]);
    for (std::size_t c = 0; c < work_columns; ++c) columns[c].push_back(numbers[c]);
  }
  for (const auto& [name, q] : {std::pair("least", 0.0), {"median", 0.5}, {"most", 1.0}}) {
    std::array<double, work_columns> numbers{};
    for (std::size_t c = 0; c < work_columns; ++c) numbers[c] = quantile(columns[c], q);
    add(name, numbers);
  }
  for (const auto& [r, name] : named)
    add(std::to_string(r) + ", " + name, numbers_of(work[r], run.finish_s[r]));
  return lines;
}

}  // namespace railpass::internal::report
