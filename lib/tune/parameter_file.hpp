// SPDX-License-Identifier: BSL-1.0
//
// Files of parameters: OTPO's format and the same as JSON. Errors name the file, the line and the
// word.
//
// OTPO's: one parameter a line, # begins a comment line. The name, then in any order
//   -d VALUE                  default
//   -p {V, V ...}             values, separated by blanks or commas (the braces may be missing)
//   -r FIRST LAST             a range of integers, with
//   -t increment OP N         how it is walked: + N, - N, * N or / N; * goes from 0 to N
//   -i NAME or -i "RPN"       condition; where it is false, the first value is the only one
//   -v                        virtual: never set, only part of aggregates
//   -a "FORMAT"               aggregate: $name$ stands for another parameter's value
#pragma once

#include "lib/tune/space.hpp"

#include <string>
#include <string_view>

namespace railpass::internal::tune {

/// A text in either format; `name` stands for the file in errors.
space parse_parameters(std::string_view text, const std::string& name);
space read_parameters(const std::string& path);

/// The same parameters in OTPO's format. Throws error for a value that it cannot hold.
std::string to_parameter_file(const std::vector<parameter>& parameters);
/// ... and as JSON.
std::string to_parameter_json(const std::vector<parameter>& parameters);

}  // namespace railpass::internal::tune
