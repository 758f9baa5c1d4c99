// SPDX-License-Identifier: BSL-1.0
//
// The hosts of statistics dumps as words and tables.
#include "lib/report/statistics_tables.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace railpass::internal::report {
namespace {

using difference = std::optional<select::host_difference>;

// A kind of difference between hosts.
struct kind {
  const char* title;
  const char* column;  // for programs
  difference select::host_statistics::*of;
  std::string (*show)(double);
  const char* finding;  // about a host that is named
};
constexpr kind kinds[] = {
    {"later by", "late_s", &select::host_statistics::late_s, format_seconds, "comes late to calls"},
    {"without core", "starved_share", &select::host_statistics::starved_share,
     [](double share) { return percent(share); }, "its ranks wait for a core"},
    {"link slower", "link_factor", &select::host_statistics::link_factor,
     [](double factor) { return fixed(factor, 2) + "x"; }, "its link is slow"}};

std::string name_of(const select::host_statistics& h) {
  return h.name.empty() ? std::to_string(h.host) : h.name;
}
std::string ranks_of(const select::host_statistics& h) {
  return std::to_string(h.num_ranks) + " from " + std::to_string(h.first_rank);
}
std::string shown(const kind& k, const difference& d) {
  if (!d) return "-";
  return k.show(d->value) + " (" + k.show(d->low) + " .. " + k.show(d->high) + ")" +
         (d->is_named ? " *" : "");
}
std::string number(const difference& d, double select::host_difference::*x) {
  return d ? nlohmann::json((*d).*x).dump() : "";
}

// "host 3: comes late to calls, its ranks wait for a core"; empty: nothing to say.
std::string finding_about(const select::host_statistics& h) {
  std::string text;
  for (const kind& k : kinds)
    if (const difference& d = h.*k.of; d && d->is_named)
      text.append(text.empty() ? "host " + name_of(h) + ": " : ", ").append(k.finding);
  return text;
}

table table_of(const std::vector<select::host_statistics>& hosts) {
  std::vector<std::string> titles{"host", "ranks"};
  for (const kind& k : kinds) titles.emplace_back(k.title);
  table lines(titles);
  for (const select::host_statistics& h : hosts) {
    std::vector<std::string> row{name_of(h), ranks_of(h)};
    for (const kind& k : kinds) row.push_back(shown(k, h.*k.of));
    lines.add(row);
  }
  return lines;
}

}  // namespace

table hosts_numbers(const select::statistics_dump& dump) {
  std::vector<std::string> titles{"host", "name", "first_rank", "num_ranks"};
  for (const kind& k : kinds)
    for (const char* part : {"", "_low", "_high", "_named"})
      titles.push_back(std::string(k.column) + part);
  table lines(titles);
  for (const select::host_statistics& h : dump.hosts) {
    std::vector<std::string> row{std::to_string(h.host), h.name, std::to_string(h.first_rank),
                                 std::to_string(h.num_ranks)};
    for (const kind& k : kinds) {
      const difference& d = h.*k.of;
      for (const auto x : {&select::host_difference::value, &select::host_difference::low,
                           &select::host_difference::high})
        row.push_back(number(d, x));
      row.emplace_back(d ? d->is_named ? "1" : "0" : "");
    }
    lines.add(row);
  }
  return lines;
}

std::string hosts_text(const select::statistics_dump& dump, const statistics_view& view,
                       output& out) {
  if (dump.hosts.empty())
    return out.wrapped(
               "The statistics have no hosts: the program ran on one host, a rank had no "
               "RAILPASS_STATS, or no communicator of all ranks was tuned.",
               0) +
           '\n';
  const table lines = table_of(dump.hosts);
  std::string text = view.markdown ? lines.markdown() + '\n' : out.printed(lines);
  std::string findings;
  for (const select::host_statistics& h : dump.hosts)
    if (const std::string about = finding_about(h); !about.empty())
      findings += out.wrapped(printable(about), 2) + '\n';
  return text + (findings.empty() ? "No host differs from the other hosts in a way that matters.\n"
                                  : findings);
}

}  // namespace railpass::internal::report
