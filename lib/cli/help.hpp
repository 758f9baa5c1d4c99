// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace railpass::internal::cli {

constexpr std::size_t terminal_columns = 80;

/// In lines of at most so many columns, broken between words. Lines that begin with a blank are
/// commands and stay as they are; the others are joined and filled anew.
std::string filled(std::string_view text, std::size_t columns);

/// Help for terminals of 80 columns.
class help_formatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace railpass::internal::cli
