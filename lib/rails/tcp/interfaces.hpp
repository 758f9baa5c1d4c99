// SPDX-License-Identifier: BSL-1.0
//
// Which of this host's network interfaces a rail is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::tcp {

/// An interface with an IPv4 address of this host.
struct interface {
  std::string name;           ///< a label (eth1:0) where the address has one
  std::uint32_t address = 0;  ///< host byte order
  int prefix_bits = 0;
  bool loopback = false;
  int mtu_bytes = 0;         ///< 0: the system does not say
  int speed_mbit_per_s = 0;  ///< nominal; 0: the system does not say
};

/// The network device that the address is one of.
inline std::string device_of(const interface& i) { return i.name.substr(0, i.name.find(':')); }

/// Those of this host that are up. Throws error if the system does not say.
std::vector<interface> local_interfaces();

/// The interface that `rail` names: exactly by its name (eth1), by the network it is in
/// (10.1.0.0/16), or by an address of this host; any address 127.x.x.x is one. Throws error if
/// there is none, or several.
interface find_interface(std::string_view rail, const std::vector<interface>& known);

/// "eth1 10.1.0.7/16, MTU 1500 bytes, 10000 Mbit/s"
std::string describe(const interface& i);

/// "10.1.0.7"
std::string format_address(std::uint32_t address);

}  // namespace railpass::internal::tcp
