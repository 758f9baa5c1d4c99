// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/settings_in_force.hpp"

#include "lib/files/files.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

namespace railpass::internal {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  return text.substr(0, text.find_last_not_of(space) + 1);
}

// Values from the environment stay; the line is checked all the same.
void add_line(std::string_view line, const std::string& origin, settings_in_force& result) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos)
    throw error(origin + ": expected name = value, found '" + std::string(line) + "'");
  const std::string name(trimmed(line.substr(0, equals)));
  const auto set_by = result.origins.find(name);
  const bool is_free = set_by == result.origins.end();
  if (!is_free && set_by->second != variable_of(name))
    throw error(origin + ": " + name + " is set before, " + set_by->second);
  settings overridden;
  assign(is_free ? result.values : overridden, name, trimmed(line.substr(equals + 1)),
         origin + ": " + name);
  if (is_free) result.origins.emplace(name, origin);
}

void add_site_file(settings_in_force& result) {
  const std::string text = files::read_text(result.site_file);
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    try {
      add_line(line, result.site_file + ": line " + std::to_string(number), result);
    } catch (const error& problem) {
      result.problems.emplace_back(problem.what());
    }
  }
}

}  // namespace

settings_in_force read_settings(const char* const* environment) {
  constexpr std::string_view names_file = "RAILPASS_CONF=", names_store = "RAILPASS_SITE=";
  std::vector<const char*> variables;
  bool is_named = false;
  std::string site_file = RAILPASS_SITE_FILE;
  for (; environment && *environment; ++environment) {
    if (const std::string_view entry = *environment; entry.starts_with(names_file)) {
      site_file = entry.substr(names_file.size());
      is_named = true;
    } else if (!entry.starts_with(names_store)) {
      variables.push_back(*environment);
    }
  }
  variables.push_back(nullptr);
  environment_settings read = read_environment(variables.data());
  settings_in_force result{.values = std::move(read.values),
                           .problems = std::move(read.problems),
                           .site_file = std::move(site_file)};
  for (const std::string& name : read.from_environment)
    result.origins.emplace(name, variable_of(name));
  std::error_code ignored;
  if (result.site_file.empty() ||
      (!is_named && !std::filesystem::exists(result.site_file, ignored)))
    return result;
  try {
    add_site_file(result);
  } catch (const error& problem) {
    result.problems.emplace_back(problem.what());
  }
  return result;
}

std::string variable_of(std::string_view setting) {
  std::string variable = "RAILPASS_";
  for (const char c : setting) variable += char(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

}  // namespace railpass::internal
