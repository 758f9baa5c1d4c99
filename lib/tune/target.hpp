// SPDX-License-Identifier: BSL-1.0
//
// Targets of parameters: how a name becomes an environment variable or a word of the command, and
// the parameters that an installed library reports.
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
  std::string_view lister;  ///< command that lists the parameters; empty: no such command
};

std::span<const target> targets();
/// Throws error that lists the names.
const target& find_target(std::string_view name);

/// The variable's name. A name that already has the prefix stays unchanged.
std::string variable_of(const target& t, std::string_view name);

/// The command with these settings as variables. For the target `words`: the command line, with
/// each {name} replaced; throws error if a name is missing in the command line.
command_request apply(const target& t, const std::string& command, const settings_list& settings);

/// A file with these settings for later runs. openmpi: mca-params.conf. Other targets: lines for a
/// shell that export variables, or assign variables for the target `words`. Throws error for names
/// or values that the file cannot hold.
std::string settings_file(const target& t, const settings_list& settings);
/// Throws the errors that settings_file would throw for any value of these parameters.
void check_settings_file(const target& t, const space& where);

/// One parameter that a library reports.
struct reported_parameter {
  std::string name, type, default_value, help;
  std::vector<std::string> values;  ///< of an enumeration
};

/// Parses the output of the listers: ompi_info --parsable, mpivars, impi_info -a, ucx_info -cf,
/// fi_info -e. Skips other lines.
std::vector<reported_parameter> parse_reported(const target& t, std::string_view text);

/// A parameter file that proposes values for each parameter; all lines are commented out, ready to
/// use.
std::string proposal(const std::vector<reported_parameter>& parameters);

}  // namespace railpass::internal::tune
