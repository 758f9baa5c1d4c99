// SPDX-License-Identifier: BSL-1.0
//
// The data of a chart on a page. page.js defines the look of all charts.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace railpass::internal::report {

/// The value may as well be anything from low to high: an error bar, of a curve a band.
struct chart_point {
  double x = 0;  ///< where the axis has names, an index in them
  double y = 0;
  std::optional<double> low{}, high{};
  std::string hint{};  ///< shown where the mouse rests
};

enum class mark { bars, points, curve };

struct chart_series {
  std::string name;
  mark drawn_as = mark::points;
  std::vector<chart_point> points{};
};

struct chart_axis {
  std::string title;
  std::string unit{};  ///< of the values; s and B are shown in multiples as suit them
  bool logarithmic = false;
  std::vector<std::string> names{};  ///< if not empty, these stand there in place of numbers
};

struct chart {
  std::string title;
  chart_axis x, y;
  std::vector<chart_series> series{};
  bool sideways = false;  ///< x, which has names, from top to bottom, and y to the right
};

}  // namespace railpass::internal::report
