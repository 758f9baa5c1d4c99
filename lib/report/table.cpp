// SPDX-License-Identifier: BSL-1.0
#include "lib/report/table.hpp"

#include "lib/report/style.hpp"
#include "lib/report/xml.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

namespace railpass::internal::report {

namespace {

// Counts characters, not bytes, because text is UTF-8.
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

std::string coloured(tone how, const std::string& text) {
  static constexpr std::array<const char*, 4> codes{"", "\033[32m", "\033[31m", "\033[1m"};
  return how == tone::plain ? text : codes[std::size_t(how)] + text + "\033[0m";
}

void table::add_folded(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  if (!rows_.empty() && row.size() > 1 &&
      std::equal(row.begin() + 1, row.end(), rows_.back().begin() + 1)) {
    rows_.back()[0] = folded_into_ + ", " + std::to_string(++folded_) + " alike";
    return;
  }
  add(std::move(row));
}

std::vector<bool> table::right_columns() const {
  std::vector<bool> right;
  for (std::size_t c = 0; c < titles_.size(); ++c)
    right.push_back(c > 0 && !rows_.empty() && std::ranges::all_of(rows_, [&](const auto& row) {
                      return is_number_like(row[c]);
                    }));
  return right;
}

namespace {

// Lines of at most `width` characters, broken at blanks and after commas if possible.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::string rest = text;
  while (width_of(rest) > width) {
    std::size_t end = 0, good = 0;
    for (std::size_t characters = 0; characters < width;) {
      if (end > 0 && (rest[end] == ' ' || rest[end - 1] == ',' || rest[end - 1] == ' ')) good = end;
      ++end;
      while (end < rest.size() && (static_cast<unsigned char>(rest[end]) & 0xC0) == 0x80) ++end;
      ++characters;
    }
    if (rest[end] == ' ' || rest[end - 1] == ',') good = end;
    if (good == 0) good = end;
    lines.push_back(rest.substr(0, good));
    rest = rest.substr(std::min(rest.size(), rest.find_first_not_of(' ', good)));
  }
  lines.push_back(rest);
  return lines;
}

// Width of the longest part that contains no blank or comma.
std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find_first_of(" ,", begin);
    end = end == text.npos ? text.size() : end + (text[end] == ',');
    longest = std::max(longest, width_of(text.substr(begin, end - begin)));
    begin = std::max(end, begin + 1);
  }
  return longest;
}

constexpr std::size_t gap = 2;

}  // namespace

// Wraps cells that are wider than their columns.
std::string table::text_of(const std::vector<std::size_t>& columns,
                           const std::vector<std::size_t>& widths, bool in_colour) const {
  const std::vector<bool> right = right_columns();
  std::string result;
  const auto row = [&](const std::vector<std::string>& cells, tone how) {
    std::vector<std::vector<std::string>> parts;
    std::size_t height = 1;
    for (const std::size_t c : columns) {
      parts.push_back(wrapped(cells[c], widths[c]));
      height = std::max(height, parts.back().size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      std::string text;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::string part = line < parts[i].size() ? parts[i][line] : "";
        const std::size_t used = width_of(part), width = widths[columns[i]];
        const std::string padding(width > used ? width - used : 0, ' ');
        text +=
            std::string(i ? gap : 0, ' ') + (right[columns[i]] ? padding + part : part + padding);
      }
      text.resize(text.find_last_not_of(' ') + 1);
      result += (in_colour ? coloured(how, text) : text) + '\n';
    }
  };
  row(titles_, tone::title);
  for (std::size_t r = 0; r < rows_.size(); ++r) row(rows_[r], tones_[r]);
  return result;
}

// Columns of names in which rows differ. A name that all rows share is shown once.
std::vector<std::size_t> table::columns_that_tell_rows_apart() const {
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < naming_; ++c)
    if (std::ranges::any_of(rows_, [&](const auto& row) { return row[c] != rows_.front()[c]; }))
      columns.push_back(c);
  return columns.empty() ? std::vector<std::size_t>{0} : columns;
}

std::string table::text(std::size_t most_columns, bool in_colour) const {
  constexpr std::size_t least_words = 16;  // narrower columns of words are hard to read
  const std::vector<bool> right = right_columns();
  std::vector<std::size_t> columns, widths, least;
  for (std::size_t c = 0; c < titles_.size(); ++c) {
    std::size_t width = width_of(titles_[c]), word = std::max(least_words, width);
    for (const auto& row : rows_) {
      width = std::max(width, width_of(row[c]));
      word = std::max(word, longest_word(row[c]));
    }
    columns.push_back(c);
    widths.push_back(width);
    // Names and numbers are never wrapped.
    least.push_back(c == 0 || right[c] ? width : std::min(width, word));
  }
  const auto whole = [](const std::vector<std::size_t>& of, const std::vector<std::size_t>& wide) {
    std::size_t width = gap * (of.empty() ? 0 : of.size() - 1);
    for (const std::size_t c : of) width += wide[c];
    return width;
  };
  if (most_columns == 0 || whole(columns, widths) <= most_columns)
    return text_of(columns, widths, in_colour);
  std::string result;
  std::vector<std::size_t> names(columns.begin(), columns.begin() + std::ptrdiff_t(naming_));
  for (std::size_t next = naming_; next < titles_.size();) {
    std::vector<std::size_t> block = std::exchange(names, columns_that_tell_rows_apart());
    const std::size_t named = whole(block, least), before = block.size();
    do block.push_back(next++);
    while (next < titles_.size() && whole(block, least) + gap + least[next] <= most_columns);
    if (const std::size_t c = block.back();
        block.size() == before + 1 && named + gap < most_columns)
      least[c] = std::min(least[c], std::max(least_words, most_columns - named - gap));
    // The widest columns of words shrink first.
    std::vector<std::size_t> narrowed = widths;
    while (whole(block, narrowed) > most_columns) {
      std::size_t widest = 0;
      for (const std::size_t c : block)
        if (narrowed[c] > least[c] && (widest == 0 || narrowed[c] > narrowed[widest])) widest = c;
      if (widest == 0) break;
      --narrowed[widest];
    }
    result += (result.empty() ? "" : "\n") + text_of(block, narrowed, in_colour);
  }
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

namespace {

// Converts text for people ("12.5 us", "64KiB", "3 %") to numbers in s, bytes and fractions.
std::string plain(const std::string& cell) {
  double value = 0;
  const char* const last = cell.data() + cell.size();
  const auto [end, failure] = std::from_chars(cell.data(), last, value);
  if (failure != std::errc{} || end == last) return cell;
  static constexpr std::array<std::pair<std::string_view, double>, 5> units{
      {{" s", 1}, {" ms", 1e-3}, {" us", 1e-6}, {" ns", 1e-9}, {" %", 1e-2}}};
  for (const auto& [unit, factor] : units)
    if (std::string_view(end, std::size_t(last - end)) == unit) return number(value * factor);
  if (const auto bytes = parse_bytes(cell)) return std::to_string(*bytes);
  return cell;
}

}  // namespace

std::string table::csv(const std::string& title) const {
  std::string result;
  const auto line = [&](const std::string& first, const std::vector<std::string>& cells,
                        bool is_title) {
    std::vector<std::string> fields = cells;
    if (!title.empty()) fields.insert(fields.begin(), first);
    for (std::size_t c = 0; c < fields.size(); ++c) {
      if (c) result += ',';
      const std::string field = is_title ? fields[c] : plain(fields[c]);
      if (field.find_first_of(",\"\n") == std::string::npos) {
        result += field;
        continue;
      }
      result += '"';
      for (const char character : field)
        result += character == '"' ? std::string("\"\"") : std::string(1, character);
      result += '"';
    }
    result += '\n';
  };
  line("of", titles_, true);
  for (const auto& row : rows_) line(title, row, false);
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

}  // namespace railpass::internal::report
