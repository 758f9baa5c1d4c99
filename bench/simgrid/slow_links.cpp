// SPDX-License-Identifier: BSL-1.0
#include "slow_links.hpp"

#include "railpass/base/error.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <simgrid/host.h>
#include <simgrid/link.h>

namespace {

std::vector<sg_link_t> route(sg_host_t from, sg_host_t to) {
  xbt_dynar_t found = xbt_dynar_new(sizeof(sg_link_t), nullptr);
  sg_host_get_route(from, to, found);
  std::vector<sg_link_t> links;
  for (unsigned long i = 0; i < xbt_dynar_length(found); ++i)
    links.push_back(xbt_dynar_get_as(found, i, sg_link_t));
  xbt_dynar_free(&found);
  return links;
}

}  // namespace

slow_links::slow_links(const std::string& what) {
  char name[64] = "";
  if (std::sscanf(what.c_str(), "%63[^,],%lf", name, &bandwidth_factor_) != 2 ||
      !(bandwidth_factor_ > 0))
    throw railpass::error("'" + what + "': expected a host or all, and a factor");
  if (std::string(name) == "all") {
    const std::unique_ptr<sg_link_t, decltype(&std::free)> all(sg_link_list(), std::free);
    for (std::size_t i = 0; i < sg_link_count(); ++i) add(all.get()[i]);
    return;
  }
  const sg_host_t host = sg_host_by_name(name);
  if (!host) throw railpass::error(std::string("the machine has no host '") + name + "'");
  const std::unique_ptr<sg_host_t, decltype(&std::free)> all(sg_host_list(), std::free);
  for (std::size_t i = 0; i < sg_host_count(); ++i) {
    if (all.get()[i] == host) continue;
    if (const auto there = route(host, all.get()[i]); !there.empty()) add(there.front());
    if (const auto back = route(all.get()[i], host); !back.empty()) add(back.back());
  }
}

void slow_links::add(sg_link_t handle) {
  if (std::ranges::find(links_, handle, &link::handle) == links_.end())
    links_.push_back({handle, sg_link_get_bandwidth(handle)});
}

void slow_links::set(double bandwidth_factor) const {
  for (const link& l : links_) sg_link_set_bandwidth(l.handle, bandwidth_factor * l.bandwidth);
}
