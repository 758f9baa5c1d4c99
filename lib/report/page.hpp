// SPDX-License-Identifier: BSL-1.0
//
// A self-contained page: one file that needs only a browser and no network. With scripts, charts
// are interactive; without scripts, tables show the numbers.
//
// Charts use Chart.js (MIT, 200 kB). Of the libraries that Debian 12, Ubuntu 22.04 and 24.04 all
// package, only Chart.js is maintained and draws bars, points and curves, with linear and
// logarithmic axes and names. dygraphs is missing in Ubuntu 22.04 and has no names on axes; c3
// needs d3 and is not maintained.
#pragma once

#include "lib/report/chart.hpp"
#include "lib/report/table.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace railpass::internal::report {

/// This host's name, as pages show it.
std::string host_name();

/// Elements appear in the order of the calls, below title, host and date. Words are plain text.
class page {
 public:
  explicit page(std::string title) : title_(std::move(title)) {}

  void section(std::string_view title);
  void text(std::string_view words);
  /// The main result.
  void finding(std::string_view words);
  void code(std::string_view words);
  void add(const table& lines);
  /// Hidden until the reader opens it.
  void add_folded(std::string_view title, const table& lines);
  void add(const chart& drawn);
  /// Self-contained SVG.
  void add_picture(std::string_view svg);

  std::string html() const;

 private:
  void element(std::string_view name, std::string_view words, std::string_view style = {});

  std::string title_, body_;
  std::map<std::string, std::size_t> colour_of_;  // a name has the same colour in all charts
  bool has_charts_ = false;
};

}  // namespace railpass::internal::report
