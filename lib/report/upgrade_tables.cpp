// SPDX-License-Identifier: BSL-1.0
#include "lib/report/upgrade_tables.hpp"

#include "lib/report/knowledge_tables.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace railpass::internal::report {

namespace {

using nlohmann::ordered_json;

std::string runs_text(std::size_t runs) {
  return std::to_string(runs) + (runs == 1 ? " run" : " runs");
}

std::string kinds_text(std::size_t kinds) {
  return std::to_string(kinds) + (kinds == 1 ? " kind of calls" : " kinds of calls");
}

const char* calls_of(const knowledge::cell_change& c) { return c.is_native ? "native" : "tuned"; }

ordered_json to_json(const knowledge::surroundings& s) {
  return {{"mpi_library", s.mpi_library}, {"kernel", s.kernel}, {"drivers", s.drivers}};
}

ordered_json to_json(const knowledge::cell_change& c) {
  return {{"collective", c.of.collective},
          {"operation", c.of.operation},
          {"num_ranks", c.of.num_ranks},
          {"ranks_per_node", c.of.ranks_per_node},
          {"kind", c.of.kind},
          {"rails", c.of.rails},
          {"bytes", c.of.bytes},
          {"calls", calls_of(c)},
          {"runs_before", c.runs_before},
          {"runs_now", c.runs_now},
          {"before_s", c.before_s},
          {"now_s", c.now_s},
          {"ratio", c.ratio},
          {"low", c.low},
          {"high", c.high},
          {"shown", c.is_shown}};
}

}  // namespace

std::string title_of(const knowledge::upgrade& u) {
  return text_of(u.machine) + "\nsince " + printable(u.since.substr(0, 10)) + ": " +
         printable(knowledge::text_of_change(u.before, u.now)) + "\n" + runs_text(u.runs_before) +
         " before, " + std::to_string(u.runs_now) + " since\n";
}

table table_of(const knowledge::upgrade& u, bool all) {
  table lines({"collective", "op", "ranks", "/node", "bytes", "calls", "runs", "before", "now",
               "ratio", "95 % interval"},
              6);
  for (const knowledge::cell_change& c : u.cells) {
    if (!all && !c.is_shown) continue;
    lines.add({c.of.collective, c.of.operation, std::to_string(c.of.num_ranks),
               std::to_string(c.of.ranks_per_node), format_bytes(c.of.bytes),
               c.of.rails.empty() ? calls_of(c) : calls_of(c) + (" over " + c.of.rails),
               std::to_string(c.runs_before) + "+" + std::to_string(c.runs_now),
               format_seconds(c.before_s), format_seconds(c.now_s), fixed(c.ratio, 2),
               fixed(c.low, 2) + ".." + fixed(c.high, 2)},
              !c.is_shown   ? tone::plain
              : c.ratio > 1 ? tone::bad
                            : tone::good);
  }
  return lines;
}

std::string rest_of(const knowledge::upgrade& u, bool all) {
  std::string text;
  const auto quiet =
      std::size_t(std::ranges::count(u.cells, false, &knowledge::cell_change::is_shown));
  if (quiet > 0 && !all) text += kinds_text(quiet) + ": no change shown. ";
  if (u.too_few > 0)
    text += kinds_text(u.too_few) + " with fewer than " + std::to_string(knowledge::least_runs) +
            " runs on a side: not compared.";
  return text;
}

ordered_json to_json(const knowledge::upgrade& u) {
  ordered_json cells = ordered_json::array();
  for (const knowledge::cell_change& c : u.cells) cells.push_back(to_json(c));
  return {{"machine_id", to_json(u.machine)},
          {"before", to_json(u.before)},
          {"now", to_json(u.now)},
          {"since", u.since},
          {"runs_before", u.runs_before},
          {"runs_now", u.runs_now},
          {"not_compared", u.too_few},
          {"cells", std::move(cells)}};
}

}  // namespace railpass::internal::report
