// SPDX-License-Identifier: BSL-1.0
//
// Rows and columns, for a terminal, for documents and for programs.
#pragma once

#include "railpass/base/printable.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal::report {

/// What a reader should see first: on a terminal with colours green, red or bold.
enum class tone { plain, good, bad, title };
std::string coloured(tone how, const std::string& text);

/// A table for people: the first column left, the others right unless they hold words.
class table {
 public:
  /// The first so many columns name a row.
  explicit table(std::vector<std::string> titles, std::size_t naming = 1)
      : titles_(std::move(titles)), naming_(naming) {}
  /// Cells may come from outside: they are shown as printable() has them.
  void add(std::vector<std::string> row, tone how = tone::plain) {
    for (std::string& cell : row) cell = printable(cell);
    folded_into_ = row[0];
    folded_ = 0;
    rows_.push_back(std::move(row));
    tones_.resize(rows_.size());
    tones_.back() = how;
  }
  /// A row that differs from the one before in its first cell alone becomes part of that one:
  /// "linear, 7 alike".
  void add_folded(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  std::size_t rows() const { return rows_.size(); }
  /// In lines of at most so many columns, if not 0: words are wrapped, and columns that have no
  /// room come below, after the columns that name the rows again.
  std::string text(std::size_t most_columns = 0, bool in_colour = false) const;
  std::string markdown() const;
  /// Times in seconds, sizes in bytes and percentages as fractions. A title becomes a first column.
  std::string csv(const std::string& title = {}) const;
  std::string html() const;

 private:
  std::vector<bool> right_columns() const;
  std::vector<std::size_t> columns_that_tell_rows_apart() const;
  std::string text_of(const std::vector<std::size_t>& columns,
                      const std::vector<std::size_t>& widths, bool in_colour) const;

  std::vector<std::string> titles_;
  std::size_t naming_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<tone> tones_;  // of rows
  std::string folded_into_;  // the first cell of the last row, before others were folded into it
  std::size_t folded_ = 0;
};

}  // namespace railpass::internal::report
