// SPDX-License-Identifier: BSL-1.0
//
// Words in pictures and pages.
#pragma once

#include <string>
#include <string_view>

namespace railpass::internal::report {

/// Text as SVG and HTML show it: markup escaped, control characters as spaces.
inline std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
  return result;
}

}  // namespace railpass::internal::report
