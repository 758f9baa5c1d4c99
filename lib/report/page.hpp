// SPDX-License-Identifier: BSL-1.0
//
// A page that stands alone: one file that needs nothing but a browser, and asks no network. With
// scripts its charts are interactive; without, their numbers are tables.
//
// Charts are Chart.js' (MIT, 200 kB): of the libraries that Debian 12, Ubuntu 22.04 and 24.04 all
// have as packages it is the one that draws bars, points and curves, with linear and logarithmic
// axes and names, and is kept up. dygraphs, whose bands come with it, is not in Ubuntu 22.04 and
// has no names on axes; c3 needs d3 as well and is no longer kept up.
#pragma once

#include "lib/report/chart.hpp"
#include "lib/report/table.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace railpass::internal::report {

/// Of this host, as pages name it.
std::string host_name();

/// What is added stands in this order below the title, the host and the date. Words are plain text.
class page {
 public:
  explicit page(std::string title) : title_(std::move(title)) {}

  void section(std::string_view title);
  void text(std::string_view words);
  /// The one thing to know.
  void finding(std::string_view words);
  void code(std::string_view words);
  void add(const table& lines);
  /// Shown when somebody asks for it.
  void add_folded(std::string_view title, const table& lines);
  void add(const chart& drawn);
  /// SVG that stands alone.
  void add_picture(std::string_view svg);

  std::string html() const;

 private:
  void element(std::string_view name, std::string_view words, std::string_view style = {});

  std::string title_, body_;
  std::map<std::string, std::size_t> colour_of_;  // what has a name looks the same in all charts
  bool has_charts_ = false;
};

}  // namespace railpass::internal::report
