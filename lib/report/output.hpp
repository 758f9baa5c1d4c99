// SPDX-License-Identifier: BSL-1.0
//
// How results are written: for people as words and tables, or as CSV.
#pragma once

#include "lib/report/table.hpp"

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>

namespace railpass::internal::report {

class output {
 public:
  /// `to` must outlive this object; `descriptor` is where it leads: on a terminal there are
  /// colours, unless NO_COLOR is set, and lines of at most 80 columns.
  output(std::ostream& to, int descriptor) : to_(to), descriptor_(descriptor) {}
  output(const output&) = delete;
  output& operator=(const output&) = delete;

  bool csv = false;   ///< tables alone are written, as CSV
  bool wide = false;  ///< lines may be longer on a terminal, too

  /// For people; nowhere with `csv`.
  std::ostream& words();
  std::string toned(tone how, const std::string& text) const;
  /// A table to go to words(). With `csv` it is written as CSV at once, with the title before every
  /// row, and there is nothing to go there.
  std::string printed(const table& lines, const std::string& title = {});
  /// The text, broken between words; all lines but the first begin with so many blanks.
  std::string wrapped(const std::string& text, std::size_t indent) const;

 private:
  bool is_on_terminal() const;
  bool shows_colours() const;

  std::ostream& to_;
  std::ostream nowhere_{nullptr};
  int descriptor_;
  mutable std::optional<bool> on_terminal_;
  std::string last_header_;  // of the last table in CSV
};

}  // namespace railpass::internal::report
