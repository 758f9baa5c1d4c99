// SPDX-License-Identifier: BSL-1.0
//
// The one table of settings (settings.def) and how values get into it.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/base/names.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railpass {

namespace setting_kind {
using boolean = bool;
using integer = std::int64_t;
using real = double;
using text = std::string;
struct bytes {
  std::int64_t value = 0;
  constexpr bytes(std::int64_t v = 0) : value(v) {}
  constexpr operator std::int64_t() const { return value; }
};
}  // namespace setting_kind

/// The values in force, a member per line of settings.def.
struct settings {
#define RAILPASS_SETTING(kind, name, standard, unit, text) setting_kind::kind name{standard};
#include "railpass/base/settings.def"
#undef RAILPASS_SETTING
};

namespace detail {

inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

inline bool parse_setting(std::string_view text, bool& value) {
  const std::string word = lower(text);
  if (word == "1" || word == "on" || word == "true" || word == "yes") return value = true, true;
  if (word == "0" || word == "off" || word == "false" || word == "no") return value = false, true;
  return false;
}
inline bool parse_setting(std::string_view text, std::int64_t& value) {
  const char* const end = text.data() + text.size();
  std::int64_t number = 0;
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc{} || stop != end || number < 0) return false;
  return value = number, true;
}
inline bool parse_setting(std::string_view text, double& value) {
  const char* const end = text.data() + text.size();
  double number = 0;
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc{} || stop != end || !std::isfinite(number) || number < 0) return false;
  return value = number, true;
}
inline bool parse_setting(std::string_view text, setting_kind::bytes& value) {
  const auto number = parse_bytes(text);
  if (!number) return false;
  return value = *number, true;
}
inline bool parse_setting(std::string_view text, std::string& value) {
  value = text;
  return true;
}

inline std::string show_setting(bool value) { return value ? "on" : "off"; }
inline std::string show_setting(std::int64_t value) { return std::to_string(value); }
inline std::string show_setting(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}
inline std::string show_setting(setting_kind::bytes value) { return format_bytes(value); }
inline std::string show_setting(const std::string& value) { return value; }

}  // namespace detail

/// One line of the table, for printing.
struct setting_description {
  std::string_view name;
  std::string_view kind;  ///< boolean, integer, real, bytes, text
  std::string standard;
  std::string value;
  std::string_view unit;
  std::string_view text;
};

inline std::vector<setting_description> describe(const settings& values) {
  const settings standards;
  std::vector<setting_description> all;
  // One at a time: threads of programs may have small stacks.
  const auto add = [&](std::string_view name, std::string_view kind, const auto& standard,
                       const auto& value, std::string_view unit, std::string_view text) {
    all.push_back(
        {name, kind, detail::show_setting(standard), detail::show_setting(value), unit, text});
  };
#define RAILPASS_SETTING(kind, name, standard, unit, text) \
  add(#name, #kind, standards.name, values.name, unit, text);
#include "railpass/base/settings.def"
#undef RAILPASS_SETTING
  return all;
}

/// Sets one value by name. Throws error if there is no such setting or the text is not one of its
/// kind; `where` says in the message where the text came from.
inline void assign(settings& values, std::string_view name, std::string_view text,
                   std::string_view where) {
  const auto fail = [&](std::string_view kind) {
    return error(std::string(where) + "='" + std::string(text) + "': expected " +
                 std::string(kind));
  };
  static constexpr auto expected = [](std::string_view kind) -> std::string_view {
    return kind == "boolean"   ? "on or off"
           : kind == "integer" ? "a whole number, not negative"
           : kind == "real"    ? "a finite number, not negative"
                               : "a size such as 65536 or 64KiB";
  };
#define RAILPASS_SETTING(kind, member, standard, unit, description)               \
  if (name == #member) {                                                          \
    if (!detail::parse_setting(text, values.member)) throw fail(expected(#kind)); \
    return;                                                                       \
  }
#include "railpass/base/settings.def"
#undef RAILPASS_SETTING
  static constexpr std::string_view known[] = {
#define RAILPASS_SETTING(kind, member, standard, unit, description) #member,
#include "railpass/base/settings.def"
#undef RAILPASS_SETTING
  };
  throw error(std::string(where) + ": there is no setting '" + std::string(name) +
              "' (railpass settings lists them)" + did_you_mean(name, known));
}

/// Settings read from an environment, and what was wrong with it. A wrong value leaves the default.
struct environment_settings {
  settings values;
  std::vector<std::string> from_environment;  ///< names that were set there
  std::vector<std::string> problems;          ///< one sentence each
};

/// `environment`: null-terminated list of "NAME=value", as in `environ`.
inline environment_settings read_environment(const char* const* environment) {
  static constexpr std::string_view prefix = "RAILPASS_";
  environment_settings result;
  for (; environment && *environment; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equals = entry.find('=');
    if (!entry.starts_with(prefix) || equals == std::string_view::npos) continue;
    const std::string_view variable = entry.substr(0, equals);
    const std::string name = detail::lower(variable.substr(prefix.size()));
    try {
      assign(result.values, name, entry.substr(equals + 1), variable);
      result.from_environment.push_back(name);
    } catch (const error& problem) {
      result.problems.emplace_back(problem.what());
    }
  }
  return result;
}

}  // namespace railpass
