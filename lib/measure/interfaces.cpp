// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/interfaces.hpp"

#include "lib/rails/tcp/interfaces.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>

namespace railpass::internal::measure {
namespace {

// Interfaces of all hosts, on rank 0; the first rank of each host reports.
std::vector<tcp::host_interface> interfaces_of(const job& j) {
  const int node = j.node_of_rank[std::size_t(j.rank)];
  std::string mine;
  const auto first = std::find(j.node_of_rank.begin(), j.node_of_rank.end(), node);
  if (first - j.node_of_rank.begin() == j.rank)
    for (const tcp::interface& i : tcp::local_interfaces()) {
      const std::uint32_t mask = i.prefix_bits == 0 ? 0 : ~std::uint32_t{0} << (32 - i.prefix_bits);
      mine += i.name + '\t' + tcp::format_address(i.address) + '\t' +
              tcp::format_address(i.address & mask) + '/' + std::to_string(i.prefix_bits) + '\t' +
              (i.loopback ? "1" : "0") + '\t' + tcp::describe(i) + '\n';
    }
  const std::vector<std::string> texts = gather_texts(j, mine);
  std::vector<tcp::host_interface> all;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    std::istringstream lines(texts[r]);
    tcp::host_interface i;
    i.host = j.hosts[std::size_t(j.node_of_rank[r])];
    std::string loopback;
    while (std::getline(lines, i.name, '\t') && std::getline(lines, i.address, '\t') &&
           std::getline(lines, i.network, '\t') && std::getline(lines, loopback, '\t') &&
           std::getline(lines, i.marks)) {
      i.loopback = loopback == "1";
      all.push_back(i);
    }
  }
  return all;
}

}  // namespace

std::vector<judged_interface> judge_interfaces(const job& j) {
  const std::vector<tcp::host_interface> all = interfaces_of(j);
  std::vector<judged_interface> judged;
  for (const tcp::host_interface& i : all) judged.push_back({i, tcp::verdict_on(i, all, j.hosts)});
  return judged;
}

std::string usable_rails(const job& j, const std::vector<judged_interface>& judged) {
  std::string rails;
  for (const judged_interface& i : judged)
    if (i.verdict.used && i.what.host == j.hosts.front())
      rails += (rails.empty() ? "" : ",") + i.what.network;
  return rails;
}

void judge_by_names(std::vector<judged_interface>& judged, const std::vector<known_link>& links,
                    const std::string& rails) {
  for (judged_interface& s : judged) {
    bool opened = false;
    for (const known_link& l : links)
      for (const std::string& m : l.measured.marks)
        opened |= m == s.what.host + ": " + s.what.marks ||
                  (s.what.loopback && m.starts_with(s.what.host + ": " + s.what.name + ' '));
    s.verdict = opened ? tcp::interface_verdict{true, "named in " + rails}
                       : tcp::interface_verdict{false, "not among " + rails};
  }
}

}  // namespace railpass::internal::measure
