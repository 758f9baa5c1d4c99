// SPDX-License-Identifier: BSL-1.0
//
// Sizes, times and numbers as people write them.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace railpass {

/// "0", "512", "8KiB", "64K", "1MiB", "1kB" (powers of 1024 with K, M, G or KiB, MiB, GiB; powers
/// of 1000 with kB, MB, GB; B and plain numbers are bytes). Nothing if it is not a size or does not
/// fit in 63 bits.
inline std::optional<std::int64_t> parse_bytes(std::string_view text) {
  struct unit {
    std::string_view name;
    std::int64_t factor;
  };
  static constexpr std::array<unit, 11> units{{{"", 1},
                                               {"B", 1},
                                               {"K", 1 << 10},
                                               {"KiB", 1 << 10},
                                               {"M", 1 << 20},
                                               {"MiB", 1 << 20},
                                               {"G", 1 << 30},
                                               {"GiB", 1 << 30},
                                               {"kB", 1000},
                                               {"MB", 1000000},
                                               {"GB", 1000000000}}};
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || number < 0) return std::nullopt;
  const std::string_view suffix(end, std::size_t(text.data() + text.size() - end));
  for (const unit& u : units)
    if (u.name == suffix) {
      if (number > std::numeric_limits<std::int64_t>::max() / u.factor) return std::nullopt;
      return number * u.factor;
    }
  return std::nullopt;
}

/// The shortest exact form with binary units: 8192 -> "8KiB", 1000 -> "1000".
inline std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array<std::string_view, 4> names{"", "KiB", "MiB", "GiB"};
  std::size_t power = 0;
  while (bytes != 0 && bytes % 1024 == 0 && power + 1 < names.size()) {
    bytes /= 1024;
    ++power;
  }
  return std::to_string(bytes) + std::string(names[power]);
}

/// With so many digits behind the point, in any locale.
inline std::string fixed(double value, int decimals) {
  std::array<char, 512> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::fixed, decimals);
  return {text.data(), end.ptr};
}

/// Three significant digits with a binary unit: 12345 -> "12.1KiB".
inline std::string format_about_bytes(double bytes) {
  static constexpr std::array<std::string_view, 4> names{"", "KiB", "MiB", "GiB"};
  std::size_t power = 0;
  for (; bytes >= 1023.5 && power + 1 < names.size(); ++power) bytes /= 1024;
  std::array<char, 512> text{};
  const auto end = bytes >= 100 ? std::to_chars(text.data(), text.data() + text.size(), bytes,
                                                std::chars_format::fixed, 0)
                                : std::to_chars(text.data(), text.data() + text.size(), bytes,
                                                std::chars_format::general, 3);
  return std::string(text.data(), end.ptr) + std::string(names[power]);
}

/// Three significant digits with a unit: 0.0000123 -> "12.3 us".
inline std::string format_seconds(double seconds) {
  struct unit {
    double factor;
    const char* name;
  };
  static constexpr std::array<unit, 4> units{{{1, "s"}, {1e3, "ms"}, {1e6, "us"}, {1e9, "ns"}}};
  const double magnitude = seconds < 0 ? -seconds : seconds;
  const unit* chosen = &units.back();
  for (const unit& u : units)
    if (magnitude * u.factor >= 0.9995) {
      chosen = &u;
      break;
    }
  if (magnitude == 0) chosen = &units.front();
  const double value = seconds * chosen->factor;
  const double size = value < 0 ? -value : value;
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return fixed(value, decimals) + ' ' + chosen->name;
}

/// "12.3 %"
inline std::string percent(double fraction, int decimals = 1) {
  return fixed(100 * fraction, decimals) + " %";
}

}  // namespace railpass
