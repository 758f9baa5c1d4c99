// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/help.hpp"

#include "lib/report/terminal.hpp"

#include <sstream>

namespace railpass::internal::cli {

std::string help_formatter::make_description(const CLI::App* app) const {
  return report::filled(CLI::Formatter::make_description(app), report::terminal_columns) + '\n';
}

std::string help_formatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::ostringstream out;
  CLI::detail::format_help(
      out, make_option_name(option, is_positional) + make_option_opts(option),
      report::filled(make_option_desc(option), report::terminal_columns - get_column_width()),
      get_column_width());
  return out.str();
}

std::string help_formatter::make_subcommand(const CLI::App* sub) const {
  std::ostringstream out;
  CLI::detail::format_help(
      out, sub->get_name(),
      report::filled(sub->get_description(), report::terminal_columns - get_column_width()),
      get_column_width());
  return out.str();
}

std::string help_formatter::make_footer(const CLI::App* app) const {
  const std::string footer = report::filled(app->get_footer(), report::terminal_columns);
  return footer.empty() ? footer : footer + '\n';
}

}  // namespace railpass::internal::cli
