// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/tcp/interfaces.hpp"

#include "railpass/base/error.hpp"

#include <arpa/inet.h>
#include <bit>
#include <charconv>
#include <cstring>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace railpass::internal::tcp {

namespace {

std::optional<std::uint32_t> parse_address(std::string_view text) {
  in_addr parsed{};
  if (inet_pton(AF_INET, std::string(text).c_str(), &parsed) != 1) return std::nullopt;
  return ntohl(parsed.s_addr);
}

std::uint32_t mask_of(int bits) { return bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits); }

// Asks the driver for facts about its device.
void ask_driver(interface& i) {
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any < 0) return;
  ifreq request{};
  device_of(i).copy(request.ifr_name, sizeof request.ifr_name - 1);
  if (ioctl(any, SIOCGIFMTU, &request) == 0) i.mtu_bytes = request.ifr_mtu;
  ethtool_cmd link{};
  link.cmd = ETHTOOL_GSET;
  request.ifr_data = reinterpret_cast<char*>(&link);
  if (ioctl(any, SIOCETHTOOL, &request) == 0) {
    const std::uint32_t speed = ethtool_cmd_speed(&link);
    if (speed != std::uint32_t(SPEED_UNKNOWN) && speed < std::uint32_t{1} << 30)
      i.speed_mbit_per_s = int(speed);
  }
  close(any);
}

std::string described(const std::vector<interface>& known) {
  std::string text;
  for (const interface& i : known)
    text += (text.empty() ? "" : ", ") + i.name + " (" + format_address(i.address) + "/" +
            std::to_string(i.prefix_bits) + ")";
  return text.empty() ? "none" : text;
}

}  // namespace

std::string format_address(std::uint32_t address) {
  char text[INET_ADDRSTRLEN] = "";
  const in_addr network{.s_addr = htonl(address)};
  inet_ntop(AF_INET, &network, text, sizeof text);
  return text;
}

std::string describe(const interface& i) {
  std::string text = i.name + ' ' + format_address(i.address) + '/' + std::to_string(i.prefix_bits);
  if (i.mtu_bytes > 0) text += ", MTU " + std::to_string(i.mtu_bytes) + " bytes";
  if (i.speed_mbit_per_s > 0) text += ", " + std::to_string(i.speed_mbit_per_s) + " Mbit/s";
  return text;
}

std::vector<interface> local_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0)
    throw error("the network interfaces cannot be listed: " + std::string(std::strerror(errno)));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, &freeifaddrs);
  std::vector<interface> result;
  for (const ifaddrs* i = list.get(); i; i = i->ifa_next) {
    if (!i->ifa_addr || !i->ifa_netmask || i->ifa_addr->sa_family != AF_INET ||
        (i->ifa_flags & IFF_UP) == 0)
      continue;
    sockaddr_in address{}, mask{};
    std::memcpy(&address, i->ifa_addr, sizeof address);
    std::memcpy(&mask, i->ifa_netmask, sizeof mask);
    result.push_back({i->ifa_name, ntohl(address.sin_addr.s_addr),
                      std::popcount(mask.sin_addr.s_addr), (i->ifa_flags & IFF_LOOPBACK) != 0, 0,
                      0});
    ask_driver(result.back());
  }
  return result;
}

interface find_interface(std::string_view rail, const std::vector<interface>& known) {
  std::vector<interface> found;
  const auto slash = rail.find('/');
  if (slash != std::string_view::npos) {
    const auto network = parse_address(rail.substr(0, slash));
    const std::string_view length = rail.substr(slash + 1);
    int bits = -1;
    const auto [stop, failure] =
        std::from_chars(length.data(), length.data() + length.size(), bits);
    if (!network || failure != std::errc{} || stop != length.data() + length.size() || bits < 0 ||
        bits > 32)
      throw error("rail '" + std::string(rail) + "': expected a network such as 10.1.0.0/16");
    for (const interface& i : known)
      if ((i.address & mask_of(bits)) == (*network & mask_of(bits))) found.push_back(i);
  } else if (const auto address = parse_address(rail)) {
    for (const interface& i : known)
      if (i.address == *address || (i.loopback && (i.address & mask_of(i.prefix_bits)) ==
                                                      (*address & mask_of(i.prefix_bits)))) {
        found.push_back(i);
        found.back().address = *address;
        break;
      }
  } else {
    for (const interface& i : known)
      if (i.name == rail) found.push_back(i);
  }
  if (found.size() == 1) return found.front();
  throw error("rail '" + std::string(rail) + "': " +
              (found.empty() ? "no such interface on this host; available: "
                             : "several addresses of this host match: ") +
              described(found.empty() ? known : found));
}

}  // namespace railpass::internal::tcp
