// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/help.hpp"

#include <sstream>

namespace railpass::internal::cli {

std::string filled(std::string_view text, std::size_t columns) {
  std::istringstream lines{std::string(text)};
  std::string result;
  std::size_t length = 0;  // of the last line, while it may be added to
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with(' ')) {
      result += (length > 0 ? "\n" : "") + line + '\n';
      length = 0;
      continue;
    }
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const bool fits = length + 1 + word.size() <= columns;
      result += length == 0 ? "" : fits ? " " : "\n";
      length = length > 0 && fits ? length + 1 + word.size() : word.size();
      result += word;
    }
  }
  return result;
}

std::string help_formatter::make_description(const CLI::App* app) const {
  return filled(CLI::Formatter::make_description(app), terminal_columns) + '\n';
}

std::string help_formatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::ostringstream out;
  CLI::detail::format_help(out, make_option_name(option, is_positional) + make_option_opts(option),
                           filled(make_option_desc(option), terminal_columns - get_column_width()),
                           get_column_width());
  return out.str();
}

std::string help_formatter::make_subcommand(const CLI::App* sub) const {
  std::ostringstream out;
  CLI::detail::format_help(out, sub->get_name(),
                           filled(sub->get_description(), terminal_columns - get_column_width()),
                           get_column_width());
  return out.str();
}

std::string help_formatter::make_footer(const CLI::App* app) const {
  const std::string footer = filled(app->get_footer(), terminal_columns);
  return footer.empty() ? footer : footer + '\n';
}

}  // namespace railpass::internal::cli
