// SPDX-License-Identifier: BSL-1.0
//
// A table of text cells, printed for terminals, documents and programs.
#pragma once

#include "railpass/base/printable.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal::report {

/// Highlighting: green, red or bold on terminals with colours.
enum class tone { plain, good, bad, title };
std::string coloured(tone how, const std::string& text);

/// The first column is left-aligned. Other columns are right-aligned unless they hold words.
class table {
 public:
  /// The first `naming` columns name a row.
  explicit table(std::vector<std::string> titles, std::size_t naming = 1)
      : titles_(std::move(titles)), naming_(naming) {}
  /// Cells may come from outside and are therefore shown as printable() converts them.
  void add(std::vector<std::string> row, tone how = tone::plain) {
    for (std::string& cell : row) cell = printable(cell);
    folded_into_ = row[0];
    folded_ = 0;
    rows_.push_back(std::move(row));
    tones_.resize(rows_.size());
    tones_.back() = how;
  }
  /// Folds a row that differs from the previous row only in its first cell into that row: "linear,
  /// 7 alike".
  void add_folded(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  std::size_t rows() const { return rows_.size(); }
  /// Lines of at most `most_columns` columns; 0: no limit. Words are wrapped. Columns without room
  /// follow below, after the columns that name the rows.
  std::string text(std::size_t most_columns = 0, bool in_colour = false) const;
  std::string markdown() const;
  /// Times in seconds, sizes in bytes, percentages as fractions. `title` becomes a first column.
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
  std::string folded_into_;  // the first cell of the last row before folding
  std::size_t folded_ = 0;
};

}  // namespace railpass::internal::report
