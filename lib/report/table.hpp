// SPDX-License-Identifier: BSL-1.0
//
// Rows and columns, for a terminal, for documents and for programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace railpass::report {

/// A table for people: the first column left, the others right unless they hold words.
class table {
 public:
  explicit table(std::vector<std::string> titles) : titles_(std::move(titles)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string text() const;
  std::string markdown() const;
  std::string csv() const;
  std::string html() const;

 private:
  std::vector<bool> right_columns() const;

  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace railpass::report
