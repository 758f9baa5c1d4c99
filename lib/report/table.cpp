// SPDX-License-Identifier: BSL-1.0
#include "lib/report/table.hpp"

#include "lib/report/xml.hpp"

#include <algorithm>

namespace railpass::report {

namespace {

// Columns as wide as their widest cell counted in characters, not bytes (UTF-8).
std::size_t width_of(const std::string& text) {
  return std::size_t(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool is_number_like(const std::string& text) {
  return text.empty() || text == "-" || (text[0] >= '0' && text[0] <= '9') ||
         ((text[0] == '-' || text[0] == '+') && text.size() > 1);
}

}  // namespace

std::vector<bool> table::right_columns() const {
  std::vector<bool> right;
  for (std::size_t c = 0; c < titles_.size(); ++c)
    right.push_back(c > 0 && !rows_.empty() && std::ranges::all_of(rows_, [&](const auto& row) {
                      return is_number_like(row[c]);
                    }));
  return right;
}

std::string table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < titles_.size(); ++c) {
    std::size_t width = width_of(titles_[c]);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
  }
  const std::vector<bool> right = right_columns();
  std::string result;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string padding(widths[c] - width_of(cells[c]), ' ');
      text += (c ? "  " : "") + (right[c] ? padding + cells[c] : cells[c] + padding);
    }
    result += text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
  };
  line(titles_);
  for (const auto& row : rows_) line(row);
  return result;
}

std::string table::markdown() const {
  std::string result;
  const auto line = [&](const std::vector<std::string>& cells) {
    result += '|';
    for (const std::string& cell : cells) {
      std::string escaped;
      for (const char c : cell) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
      result += ' ' + escaped + " |";
    }
    result += '\n';
  };
  line(titles_);
  result += '|';
  for (std::size_t c = 0; c < titles_.size(); ++c) result += "---|";
  result += '\n';
  for (const auto& row : rows_) line(row);
  return result;
}

std::string table::csv() const {
  std::string result;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c) result += ',';
      if (cells[c].find_first_of(",\"\n") == std::string::npos) {
        result += cells[c];
        continue;
      }
      result += '"';
      for (const char character : cells[c])
        result += character == '"' ? std::string("\"\"") : std::string(1, character);
      result += '"';
    }
    result += '\n';
  };
  line(titles_);
  for (const auto& row : rows_) line(row);
  return result;
}

std::string table::html() const {
  const std::vector<bool> right = right_columns();
  std::string result = "<table>\n";
  const auto line = [&](const std::vector<std::string>& cells, const std::string& kind) {
    result += "<tr>";
    for (std::size_t c = 0; c < cells.size(); ++c)
      result += '<' + kind + (right[c] ? " class=\"number\">" : ">") + xml_text(cells[c]) + "</" +
                kind + '>';
    result += "</tr>\n";
  };
  line(titles_, "th");
  for (const auto& row : rows_) line(row, "td");
  return result + "</table>\n";
}

}  // namespace railpass::report
