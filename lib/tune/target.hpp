// SPDX-License-Identifier: BSL-1.0
//
// Whom parameters are for: how a name becomes a variable of the environment or a word of the
// command, and what parameters an installed library says it has.
#pragma once

#include "lib/tune/command.hpp"
#include "lib/tune/space.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::tune {

struct target {
  std::string_view name;
  std::string_view prefix;  ///< of the variables
  std::string_view summary;
  std::string_view lister;  ///< command that lists the parameters; empty: there is none
};

std::span<const target> targets();
/// Throws error that lists the names.
const target& find_target(std::string_view name);

/// The variable's name; a name that has the prefix already keeps it.
std::string variable_of(const target& t, std::string_view name);

/// The command with these settings: variables, or for the target `words` the command line with each
/// {name} replaced. Throws error if a name is not in the command line.
command_request apply(const target& t, const std::string& command, const settings_list& settings);

/// A file with these settings for later runs: mca-params.conf for openmpi, else lines that a shell
/// can read, which export variables, or assign them for the target `words`. Throws error for a name
/// or a value that such a file cannot hold.
std::string settings_file(const target& t, const settings_list& settings);
/// Throws what settings_file would for one of these parameters with one of its values.
void check_settings_file(const target& t, const space& where);

/// One parameter that a library reports.
struct reported_parameter {
  std::string name, type, default_value, help;
  std::vector<std::string> values;  ///< of an enumeration
};

/// What the listers print: ompi_info --parsable, mpivars, impi_info -a, ucx_info -cf, fi_info -e.
/// Lines of another form are passed over.
std::vector<reported_parameter> parse_reported(const target& t, std::string_view text);

/// A parameter file that proposes values for each, all lines commented out but ready to use.
std::string proposal(const std::vector<reported_parameter>& parameters);

}  // namespace railpass::internal::tune
