// SPDX-License-Identifier: BSL-1.0
//
// Style of pictures and pages: colours, and the format of numbers.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace railpass::internal::report {

inline constexpr std::string_view ink = "#22313a", faint_ink = "#556068", grid_colour = "#c5d0d6",
                                  faint_grid_colour = "#e4e9ec", paper = "#ffffff";
/// For series that must be distinguished.
inline constexpr std::array<std::string_view, 8> colours{
    "#0b6e4f", "#3b7dd8", "#f0932b", "#9b59b6", "#c0392b", "#16a0a0", "#8e6c3a", "#d35db3"};

/// With five digits at most.
inline std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", x);
  return text;
}

}  // namespace railpass::internal::report
