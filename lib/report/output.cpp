// SPDX-License-Identifier: BSL-1.0
#include "lib/report/output.hpp"

#include "lib/report/terminal.hpp"

#include <cstdlib>
#include <sstream>
#include <string_view>

namespace railpass::internal::report {

bool output::is_on_terminal() const {
  if (!on_terminal_) on_terminal_ = !find_terminal(descriptor_).empty();
  return *on_terminal_;
}

// As no-color.org has it: any value but an empty one.
bool output::shows_colours() const {
  const auto value = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return std::string_view(text ? text : "");
  };
  return value("NO_COLOR").empty() && value("TERM") != "dumb" && is_on_terminal();
}

std::ostream& output::words() { return csv ? nowhere_ : to_; }

std::string output::toned(tone how, const std::string& text) const {
  return shows_colours() ? coloured(how, text) : text;
}

std::string output::printed(const table& lines, const std::string& title) {
  if (!csv) return lines.text(wide || !is_on_terminal() ? 0 : terminal_columns, shows_colours());
  // One header for tables of one kind, an empty line between kinds.
  const std::string text = lines.csv(title), header = text.substr(0, text.find('\n') + 1);
  to_ << (header == last_header_ ? text.substr(header.size())
                                 : (last_header_.empty() ? "" : "\n") + text);
  last_header_ = header;
  return {};
}

std::string output::wrapped(const std::string& text, std::size_t indent) const {
  if (wide || !is_on_terminal()) return text;
  std::istringstream lines(filled(text, terminal_columns - indent));
  std::string result;
  for (std::string line; std::getline(lines, line);)
    result += (result.empty() ? "" : '\n' + std::string(indent, ' ')) + line;
  return result;
}

}  // namespace railpass::internal::report
