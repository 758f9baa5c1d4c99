// SPDX-License-Identifier: BSL-1.0
//
// Text in lines, with errors that name file and line.
#pragma once

#include "lib/files/json_reader.hpp"

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

namespace railpass::internal::files {

class line_reader {
 public:
  line_reader(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  bool next() {
    if (rest_.empty()) return false;
    ++number_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) fail("the line has no end, the file is cut short");
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  std::string_view line() const { return line_; }

  [[noreturn]] void fail(const std::string& what) const {
    throw error(name_ + ": line " + std::to_string(number_) + ": " + what);
  }

  std::int64_t bytes(std::string_view word) const {
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc{} || end != word.data() + word.size() || value < 0 ||
        value > largest_integer)
      fail("expected a size in bytes, found '" + std::string(word.substr(0, 40)) + "'");
    return value;
  }
  double number(std::string_view word) const {
    double value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc{} || end != word.data() + word.size() || !std::isfinite(value) ||
        value < 0)
      fail("expected a finite number >= 0, found '" + std::string(word.substr(0, 40)) + "'");
    return value;
  }

 private:
  std::string_view rest_, line_;
  std::string name_;
  int number_ = 0;
};

}  // namespace railpass::internal::files
