// SPDX-License-Identifier: BSL-1.0
//
// The one gate for text that is shown to people and may come from outside: names in files, of
// files, of hosts and programs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace railpass {

namespace detail {

struct code_point {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  ///< 0: the text begins with no UTF-8
};

constexpr code_point first_code_point(std::string_view text) {
  struct form {
    unsigned char mask, mark;
    std::uint32_t least;  // smaller ones have a shorter form
  };
  constexpr std::array<form, 4> forms{
      {{0x80, 0, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}}};
  for (std::size_t more = 0; more < forms.size(); ++more) {
    const auto first = static_cast<unsigned char>(text[0]);
    if ((first & forms[more].mask) != forms[more].mark) continue;
    if (text.size() <= more) return {};
    std::uint32_t value = first & std::uint32_t(0xFF ^ forms[more].mask);
    for (std::size_t i = 1; i <= more; ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      if ((next & 0xC0) != 0x80) return {};
      value = value << 6 | (next & 0x3Fu);
    }
    const bool is_surrogate = value >= 0xD800 && value < 0xE000;
    return value < forms[more].least || is_surrogate || value > 0x10FFFF
               ? code_point{}
               : code_point{value, more + 1};
  }
  return {};
}

// What terminals obey, and what turns text around.
constexpr bool is_command(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

}  // namespace detail

/// The text in one line of valid UTF-8 that commands no terminal: all else is shown as \n, \t or,
/// byte by byte, as \x1b.
inline std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const detail::code_point next = detail::first_code_point(text);
    const std::string_view part = text.substr(0, next.bytes == 0 ? 1 : next.bytes);
    text.remove_prefix(part.size());
    if (next.bytes > 0 && !detail::is_command(next.value))
      shown += part;
    else if (part == "\n" || part == "\t")
      shown += part == "\n" ? "\\n" : "\\t";
    else
      for (const char c : part) {
        shown += "\\x";
        for (const int digit : {(c >> 4) & 15, c & 15}) shown += "0123456789abcdef"[digit];
      }
  }
  return shown;
}

}  // namespace railpass
