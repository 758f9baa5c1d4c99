// SPDX-License-Identifier: BSL-1.0
//
// Finds the network interface of this host that a rail names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::tcp {

/// An interface with an IPv4 address of this host.
struct interface {
  std::string name;           ///< a label (eth1:0) if the address has a label
  std::uint32_t address = 0;  ///< host byte order
  int prefix_bits = 0;
  bool loopback = false;
  int mtu_bytes = 0;         ///< 0: unknown
  int speed_mbit_per_s = 0;  ///< nominal; 0: unknown
};

/// The network device of the address.
inline std::string device_of(const interface& i) { return i.name.substr(0, i.name.find(':')); }

/// This host's interfaces that are up. Throws error if the system does not report interfaces.
std::vector<interface> local_interfaces();

/// The interface that `rail` names exactly by name (eth1), by its network (10.1.0.0/16), or by an
/// address of this host; any address 127.x.x.x is local. Throws error for no match or several
/// matches.
interface find_interface(std::string_view rail, const std::vector<interface>& known);

/// "eth1 10.1.0.7/16, MTU 1500 bytes, 10000 Mbit/s"
std::string describe(const interface& i);

/// "10.1.0.7"
std::string format_address(std::uint32_t address);

}  // namespace railpass::internal::tcp
