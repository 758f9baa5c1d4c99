// SPDX-License-Identifier: BSL-1.0
//
// Chooses the hosts' interfaces that can be rails, if the user names no rails.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace railpass::internal::tcp {

/// An interface of one of the hosts.
struct host_interface {
  std::string host;
  std::string name;
  std::string address;  ///< 10.1.0.7
  std::string network;  ///< 10.1.0.0/16
  bool loopback = false;
  std::string marks;  ///< for people
};

struct interface_verdict {
  bool used = false;
  std::string why;
};

/// A network can be a rail if every host has one address in it, and all addresses differ: then all
/// ranks can name the network. Whether messages pass is tested when the rail is opened.
inline interface_verdict verdict_on(const host_interface& i, const std::vector<host_interface>& all,
                                    const std::vector<std::string>& hosts) {
  if (i.loopback) return {false, "leads to this host only"};
  if (hosts.size() < 2) return {false, "all ranks are on one host"};
  std::set<std::string> addresses;
  for (const std::string& host : hosts) {
    const auto in_network = [&](const host_interface& other) {
      return other.host == host && other.network == i.network;
    };
    const auto number = std::ranges::count_if(all, in_network);
    if (number == 0) return {false, "host " + host + " has no address in " + i.network};
    if (number > 1)
      return {false, "host " + host + " has several addresses in " + i.network +
                         "; name interfaces or addresses"};
    const std::string& address = std::ranges::find_if(all, in_network)->address;
    if (!addresses.insert(address).second)
      return {false, "several hosts have the address " + address + ": not one network"};
  }
  return {true, "all " + std::to_string(hosts.size()) + " hosts have one address in " + i.network};
}

}  // namespace railpass::internal::tcp
